//! Plimsoll inside a web service: jobs come in over HTTP, and their state can be asked.
//!
//!     cargo run --example inside_axum            serves until Ctrl-C
//!     cargo run --example inside_axum -- --once  asks itself once and ends

use std::error::Error;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use plimsoll::{Handle, JobId, JobSpec, NodeSpec, Runtime, TaskContext, tasks};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn submit(State(handle): State<Handle>, Path(count): Path<u32>) -> (StatusCode, String) {
    match handle.submit(JobSpec::bag("from the web", count).request("slot", 1)).await {
        Ok(job) => (StatusCode::CREATED, format!("{}\n", job.0)),
        Err(error) if error.is_retryable() => (StatusCode::TOO_MANY_REQUESTS, format!("{error}\n")),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")),
    }
}

async fn status(State(handle): State<Handle>, Path(job): Path<u64>) -> Result<Json<[u64; 3]>, StatusCode> {
    let status = handle.job(JobId(job)).map_err(|_| StatusCode::NOT_FOUND)?;
    Ok(Json([status.queued(), status.live, status.completed]))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let executor = tasks(|_: TaskContext| async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        Ok(())
    });
    let runtime = Runtime::builder().executor(executor).start()?;
    let handle = runtime.handle();
    handle.add_node(NodeSpec::new("here").capacity("slot", 4)).await?;
    let routes = Router::new()
        .route("/jobs/{count}", post(submit))
        .route("/status/{job}", get(status))
        .with_state(handle.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    println!("curl -X POST http://{address}/jobs/20; curl http://{address}/status/1");
    let once = std::env::args().any(|argument| argument == "--once");
    let end = async move {
        if once {
            ask(address, "POST /jobs/20").await;
            // The handler has answered, so the job is known.
            let _ = handle.wait(JobId(1)).await;
            ask(address, "GET /status/1").await;
        } else {
            let _ = tokio::signal::ctrl_c().await;
        }
    };
    axum::serve(listener, routes).with_graceful_shutdown(end).await?;
    runtime.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

/// Asks the service and prints the last line of its answer.
async fn ask(address: std::net::SocketAddr, request: &str) {
    let text = format!("{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    let answer = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(text.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<String, std::io::Error>(answer)
    };
    match answer.await {
        Ok(answer) => println!("{request}: {}", answer.trim_end().lines().last().unwrap_or("")),
        Err(error) => println!("{request}: {error}"),
    }
}
