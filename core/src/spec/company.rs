//! What tasks ask of the company they keep on a node: ports, replicas, and being alone.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Filter, ShapeSpec};

/// A port of the node itself that only one task can have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct HostPort {
    pub port: u16,
    pub protocol: Protocol,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Protocol {
    Tcp,
    Udp,
    Sctp,
}

impl HostPort {
    /// From `80/tcp`; a number alone is a port of TCP.
    pub fn parse(text: &str) -> Option<HostPort> {
        let (port, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
        let protocol = match protocol {
            "tcp" => Protocol::Tcp,
            "udp" => Protocol::Udp,
            "sctp" => Protocol::Sctp,
            _ => return None,
        };
        let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port: u16 = digits.then(|| port.parse().ok()).flatten()?;
        (port > 0).then_some(HostPort { port, protocol })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Sctp => "sctp",
        };
        write!(f, "{}/{protocol}", self.port)
    }
}

/// Who is on a node, as far as newcomers mind. Ports are counted, not listed: of two tasks that hold one
/// (they ran already when they were entered) the first to leave does not free it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Company {
    pub tasks: u32,
    /// Tasks that want to be alone.
    alone: u32,
    /// Only where somebody has a port or belongs to a service: most nodes pay nothing for it.
    details: Option<Box<Details>>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Details {
    ports: BTreeMap<HostPort, u32>,
    services: BTreeMap<String, u32>,
}

impl Company {
    pub fn join(&mut self, shape: &ShapeSpec) {
        self.tasks += 1;
        self.alone += u32::from(shape.exclusive);
        if shape.ports.is_empty() && shape.service.is_none() {
            return;
        }
        let details = self.details.get_or_insert_default();
        for port in &shape.ports {
            *details.ports.entry(*port).or_default() += 1;
        }
        if let Some((service, _)) = shape.service.as_deref() {
            match details.services.get_mut(service) {
                Some(count) => *count += 1,
                None => drop(details.services.insert(service.clone(), 1)),
            }
        }
    }

    pub fn leave(&mut self, shape: &ShapeSpec) {
        self.tasks -= 1;
        self.alone -= u32::from(shape.exclusive);
        if shape.ports.is_empty() && shape.service.is_none() {
            return;
        }
        let details = self.details.as_mut().expect("who leaves has joined");
        for port in &shape.ports {
            let count = details.ports.get_mut(port).expect("who leaves has joined");
            *count -= 1;
            if *count == 0 {
                details.ports.remove(port);
            }
        }
        if let Some((service, _)) = shape.service.as_deref() {
            let count = details.services.get_mut(service).expect("who leaves has joined");
            *count -= 1;
            if *count == 0 {
                details.services.remove(service);
            }
        }
        if details.ports.is_empty() && details.services.is_empty() {
            self.details = None;
        }
    }

    /// Whether somebody has the node for itself.
    pub fn is_closed(&self) -> bool {
        self.alone > 0
    }

    /// Whether nobody here has a port or belongs to a service.
    pub fn is_plain(&self) -> bool {
        self.details.is_none()
    }

    /// Tasks of this service.
    pub fn of_service(&self, service: &str) -> u32 {
        let details = self.details.as_ref();
        details.and_then(|details| details.services.get(service)).copied().unwrap_or(0)
    }

    pub fn has_port(&self, port: HostPort) -> bool {
        self.details.as_ref().is_some_and(|details| details.ports.contains_key(&port))
    }

    pub fn admits(&self, shape: &ShapeSpec) -> bool {
        // A guest is a part of the company of its host, whatever the host asks for.
        shape.guest_of.is_some()
            || (!shape.minds_company() && !self.is_closed())
            || self.objections(shape).next().is_none()
    }

    /// Everything about the company that keeps a task away, in the order of the filters.
    pub fn objections<'a>(&'a self, shape: &'a ShapeSpec) -> impl Iterator<Item = Filter> + 'a {
        let ports = shape.ports.iter().any(|port| self.has_port(*port));
        let service = shape.service.as_deref().map_or("", |(service, _)| service);
        let replicas = shape.max_per_node > 0 && self.of_service(service) >= shape.max_per_node;
        let alone = self.is_closed() || (shape.exclusive && self.tasks > 0);
        let verdicts = [(Filter::Ports, ports), (Filter::Replicas, replicas), (Filter::Exclusive, alone)];
        verdicts.into_iter().filter(|(_, objects)| *objects).map(|(filter, _)| filter)
    }
}

impl ShapeSpec {
    /// Whether it matters to these tasks who else is on a node.
    pub fn minds_company(&self) -> bool {
        self.exclusive || self.max_per_node > 0 || !self.ports.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_and_out_of_range_ones_are_not() {
        for text in ["80/tcp", "53/udp", "65535/sctp"] {
            assert_eq!(HostPort::parse(text).expect("a port").to_string(), text);
        }
        assert_eq!(HostPort::parse("80"), HostPort::parse("80/tcp"));
        for text in ["0", "65536/tcp", "", "/tcp", "+80", "80/", "80/TCP", "80/http", "-1", "8 0"] {
            assert_eq!(HostPort::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_port_is_free_when_the_last_who_has_it_has_left() {
        let port = HostPort::parse("80").expect("a port");
        let web = ShapeSpec { ports: vec![port].into(), ..ShapeSpec::default() };
        let mut company = Company::default();
        company.join(&web);
        company.join(&web);
        company.leave(&web);
        assert_eq!(company.objections(&web).collect::<Vec<_>>(), [Filter::Ports]);
        company.leave(&web);
        assert_eq!(company, Company::default());
        assert!(company.admits(&web));
    }

    #[test]
    fn whoever_wants_to_be_alone_keeps_others_away_and_is_kept_away() {
        let (plain, alone) = (ShapeSpec::default(), ShapeSpec { exclusive: true, ..ShapeSpec::default() });
        let mut company = Company::default();
        assert!(company.admits(&alone));
        company.join(&plain);
        assert!(company.admits(&plain) && !company.admits(&alone));
        company.leave(&plain);
        company.join(&alone);
        assert!(!company.admits(&plain) && company.is_closed());
    }

    #[test]
    fn replicas_are_counted_by_service() {
        let service = Some(Box::new(("web".to_owned(), 1)));
        let web = ShapeSpec { service, max_per_node: 2, ..ShapeSpec::default() };
        let next = ShapeSpec { service: Some(Box::new(("web".to_owned(), 2))), ..web.clone() };
        let mut company = Company::default();
        company.join(&web);
        assert!(company.admits(&next));
        company.join(&next);
        assert_eq!(company.objections(&web).collect::<Vec<_>>(), [Filter::Replicas]);
    }
}
