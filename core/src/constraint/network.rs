//! Addresses and networks of both families.

// These are the types of addresses alone; the module has no sockets, so the crate stays pure.
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;

/// A network, or a single address as the network that contains it alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Network {
    /// All bits behind the prefix are zero.
    first: IpAddr,
    prefix: u8,
}

const IPV4_BITS: u8 = 32;
const IPV6_BITS: u8 = 128;

/// How many bits come before the IPv4 address in an IPv6 address that stands for one.
const MAPPED_BITS: u8 = IPV6_BITS - IPV4_BITS;

const PREFIX_DIGITS_MAX: usize = 3;

fn bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => IPV4_BITS,
        IpAddr::V6(_) => IPV6_BITS,
    }
}

fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    let cleared = u32::from(bits(address).saturating_sub(prefix));
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(cleared).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(cleared).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

impl Network {
    pub(super) fn parse(text: &str) -> Option<Network> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let prefix = match prefix {
            Some(prefix) => parse_prefix(prefix).filter(|prefix| *prefix <= bits(address))?,
            None => bits(address),
        };
        // An IPv6 address that stands for an IPv4 one is the same address.
        let (address, prefix) = match address.to_canonical() {
            mapped @ IpAddr::V4(_) if address.is_ipv6() && prefix >= MAPPED_BITS => {
                (mapped, prefix - MAPPED_BITS)
            }
            _ => (address, prefix),
        };
        Some(Network { first: masked(address, prefix), prefix })
    }

    /// Whether the text is an address in this network.
    pub(super) fn contains(self, text: &str) -> bool {
        let Ok(address) = text.parse::<IpAddr>() else { return false };
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && masked(address, self.prefix) == self.first
    }
}

fn parse_prefix(text: &str) -> Option<u8> {
    let is_number = text.len() <= PREFIX_DIGITS_MAX && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix == bits(self.first) {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}/{}", self.first, self.prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_what_shares_its_prefix() {
        let contains = |network: &str, address| Network::parse(network).map(|one| one.contains(address));
        for (network, address, expected) in [
            ("10.1.2.3/8", "10.255.0.1", true),
            ("10.1.2.3/8", "11.0.0.1", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "2001:db8::1", true),
            ("::/0", "203.0.113.9", false),
            ("2001:db8::/127", "2001:db8::1", true),
            ("2001:db8::/127", "2001:db8::2", false),
            ("::ffff:10.0.0.0/104", "10.9.9.9", true),
            ("::ffff:10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1", "::ffff:10.0.0.1", true),
            ("10.0.0.1/32", "10.0.0.1", true),
            ("10.0.0.1", "", false),
            ("10.0.0.1", "10.0.0.1/32", false),
        ] {
            assert_eq!(contains(network, address), Some(expected), "{address} in {network}");
        }
    }

    #[test]
    fn one_network_has_one_text() {
        let text = |text| Network::parse(text).map(|network| network.to_string());
        for (given, printed) in [
            ("186.17.9.4/24", "186.17.9.0/24"),
            ("10.0.0.1/32", "10.0.0.1"),
            ("2001:DB8:0:0::2", "2001:db8::2"),
            ("::ffff:10.0.0.7/104", "10.0.0.0/8"),
            ("::ffff:10.0.0.7/90", "::ffc0:0:0/90"),
            ("10.0.0.0/08", "10.0.0.0/8"),
        ] {
            assert_eq!(text(given).as_deref(), Some(printed));
        }
        for none in
            ["", "266.17.9.41", "10.0.0.0/33", "::/129", "10.0.0.0/", "/8", "10.0.0.0/+8", "a", "::/0008"]
        {
            assert_eq!(text(none), None, "{none}");
        }
    }
}
