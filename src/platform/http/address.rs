//! Which addresses are called. Whoever may write an Account chooses the host, and the operator stands where they may not: in the
//! cluster's network, beside the API server and the node's own services.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::platform::Reach;

/// An address that is not called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RefusedAddress(&'static str);

impl fmt::Display for RefusedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the host of the base URL is {}, which the operator calls only with --allow-insecure-platform, for tests",
            self.0
        )
    }
}

impl std::error::Error for RefusedAddress {}

/// Refuses the host of `url` where it is an address and not a name. Such a host is never resolved.
pub(super) fn check_literal(url: &Url, reach: &Reach) -> Result<(), RefusedAddress> {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host.parse().map_or(Ok(()), |address| check(address, &reach.api_server))
}

/// Resolves names to the addresses that may be called: what a name leads to may change from one connection to the next.
#[derive(Debug)]
pub(super) struct Resolver {
    api_server: Vec<IpAddr>,
}

impl Resolver {
    pub fn new(reach: &Reach) -> Self {
        Self { api_server: reach.api_server.clone() }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let api_server = self.api_server.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let (mut allowed, mut refused) = (Vec::new(), None);
            for address in found {
                match check(address.ip(), &api_server) {
                    Ok(()) => allowed.push(address),
                    Err(why) => refused = Some(why),
                }
            }
            match refused.filter(|_| allowed.is_empty()) {
                Some(refused) => Err(refused.into()),
                None => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

fn check(address: IpAddr, api_server: &[IpAddr]) -> Result<(), RefusedAddress> {
    let address = plain(address);
    let kind = match address {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => kind_v6(address),
    };
    let own = || api_server.iter().any(|own| plain(*own) == address).then_some("the API server's address");
    kind.or_else(own).map_or(Ok(()), |kind| Err(RefusedAddress(kind)))
}

fn kind_v4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [127, ..] => Some("a loopback address"),
        // All of it means this machine.
        [0, ..] => Some("an unspecified address"),
        [169, 254, ..] => Some("a link-local address"),
        [224..=239, ..] => Some("a multicast address"),
        [255, 255, 255, 255] => Some("the broadcast address"),
        _ => None,
    }
}

fn kind_v6(address: Ipv6Addr) -> Option<&'static str> {
    match address {
        Ipv6Addr::LOCALHOST => Some("a loopback address"),
        Ipv6Addr::UNSPECIFIED => Some("an unspecified address"),
        _ if address.is_unicast_link_local() => Some("a link-local address"),
        _ if address.is_multicast() => Some("a multicast address"),
        _ => None,
    }
}

/// The IPv4 address that an IPv6 address stands for, where it does: IPv4-mapped (`::ffff:0:0/96`), or behind the well-known prefix
/// of NAT64 (`64:ff9b::/96`).
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    match v6.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            IpAddr::V4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_addresses_are_called() {
        let api_server: Vec<IpAddr> = ["10.96.0.1", "fd00::1"].map(|text| text.parse().unwrap()).to_vec();
        for (address, refused) in [
            ("127.0.0.1", Some("a loopback address")),
            ("127.255.3.4", Some("a loopback address")),
            ("::1", Some("a loopback address")),
            ("::ffff:127.0.0.1", Some("a loopback address")),
            ("64:ff9b::127.0.0.1", Some("a loopback address")),
            ("0.0.0.0", Some("an unspecified address")),
            ("0.1.2.3", Some("an unspecified address")),
            ("::", Some("an unspecified address")),
            ("::ffff:0.0.0.0", Some("an unspecified address")),
            ("169.254.169.254", Some("a link-local address")),
            ("::ffff:169.254.169.254", Some("a link-local address")),
            ("64:ff9b::169.254.169.254", Some("a link-local address")),
            ("fe80::1", Some("a link-local address")),
            ("febf::1", Some("a link-local address")),
            ("224.0.0.1", Some("a multicast address")),
            ("239.255.255.255", Some("a multicast address")),
            ("ff02::1", Some("a multicast address")),
            ("255.255.255.255", Some("the broadcast address")),
            ("10.96.0.1", Some("the API server's address")),
            ("::ffff:10.96.0.1", Some("the API server's address")),
            ("fd00::1", Some("the API server's address")),
            ("10.96.0.2", None),
            ("172.16.0.1", None),
            ("192.168.1.1", None),
            ("::ffff:192.168.1.1", None),
            ("fd00::2", None),
            ("203.0.113.7", None),
            ("126.255.255.255", None),
            ("128.0.0.1", None),
            ("169.253.1.1", None),
            ("2001:db8::1", None),
        ] {
            let checked = check(address.parse().unwrap(), &api_server).err();
            assert_eq!(checked.map(|refused| refused.0), refused, "{address}");
        }
        // However its own address is written.
        let mapped = ["::ffff:10.96.0.1".parse().unwrap()];
        assert!(check("10.96.0.1".parse().unwrap(), &mapped).is_err());
    }

    #[test]
    fn every_spelling_of_an_address_in_a_url() {
        let reach = Reach::default();
        for url in [
            "https://127.0.0.1/v2",
            "https://127.1:8443/v2",
            "https://2130706433/v2",
            "https://0x7f.0.0.1/v2",
            "https://0177.0.0.1/v2",
            "https://127.0.0.1./v2",
            "https://[::1]/v2",
            "https://[0:0:0:0:0:0:0:1]:8443/v2",
            "https://[::ffff:127.0.0.1]/v2",
            "https://[::ffff:7f00:1]/v2",
            "https://0/v2",
        ] {
            assert!(check_literal(&Url::parse(url).unwrap(), &reach).is_err(), "{url}");
        }
        for url in ["https://10.0.0.1/v2", "https://[fd00::1]/v2", "https://localhost/v2", "https://127.example/v2"] {
            assert_eq!(check_literal(&Url::parse(url).unwrap(), &reach), Ok(()), "{url}");
        }
    }
}
