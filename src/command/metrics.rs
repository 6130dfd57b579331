//! Serves what was measured as Prometheus text, to whoever asks on one address.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Longer requests are not read to their end.
const REQUEST_MAX: usize = 8_192;
const PATIENCE: Duration = Duration::from_secs(5);

/// Everything that is measured from now on, and where it can be read.
pub(super) struct MetricsServer {
    listener: TcpListener,
    handle: PrometheusHandle,
}

impl MetricsServer {
    /// Begins to measure; from then on the address is taken.
    pub(super) async fn bind(address: SocketAddr) -> io::Result<MetricsServer> {
        let listener = TcpListener::bind(address).await?;
        let handle = PrometheusBuilder::new().install_recorder().map_err(io::Error::other)?;
        Ok(MetricsServer { listener, handle })
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers one after the other, for ever.
    pub(super) async fn serve(self) {
        let mut upkeep = tokio::time::interval(PATIENCE);
        loop {
            tokio::select! {
                // Without it, what nobody reads would pile up.
                _ = upkeep.tick() => self.handle.run_upkeep(),
                connection = self.listener.accept() => {
                    let Ok((stream, _)) = connection else { continue };
                    // Whoever asks too slowly is left.
                    let _ = tokio::time::timeout(PATIENCE, answer(stream, &self.handle)).await;
                }
            }
        }
    }
}

async fn answer(mut stream: TcpStream, handle: &PrometheusHandle) -> io::Result<()> {
    let mut request = Vec::with_capacity(1_024);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_MAX {
        if stream.read_buf(&mut request).await? == 0 {
            break;
        }
    }
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let (status, body) = match line.split(|byte| *byte == b' ').collect::<Vec<_>>()[..] {
        [b"GET", b"/metrics", ..] => ("200 OK", handle.render()),
        [b"GET", ..] => ("404 Not Found", "the figures are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", String::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
