//! Decides which addresses dbplane may call. The author of an Account chooses the host. The
//! operator can reach addresses that the author may not: the cluster's network, the API server and
//! the node's services.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::special::{self, AddressKind};
use crate::platform::Reach;

/// An address that dbplane refuses to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RefusedAddress {
    what: &'static str,
    /// True if the administrator may allow it.
    local: bool,
}

impl fmt::Display for RefusedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unless = if self.local {
            "where its flag --allowed-platforms names the host in full, without a star"
        } else {
            "with --allow-insecure-platform, for tests"
        };
        write!(
            f,
            "the host of the base URL is {}, which the operator calls only {unless}",
            self.what
        )
    }
}

impl std::error::Error for RefusedAddress {}

/// The addresses that may be called for one platform. As a resolver it checks each new connection,
/// because a name may resolve to another address later.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    api_server: Vec<IpAddr>,
    /// True if private addresses are allowed.
    pub local: bool,
}

impl Addresses {
    pub fn of(url: &Url, reach: &Reach) -> Self {
        Self {
            api_server: reach.api_server.iter().copied().map(plain).collect(),
            local: reach.names(url),
        }
    }

    /// Rejects a forbidden host of `url` that is an address. The client never resolves such a host.
    pub fn check_literal(&self, url: &Url) -> Result<(), RefusedAddress> {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        host.parse().map_or(Ok(()), |address| self.check(address))
    }

    fn check(&self, address: IpAddr) -> Result<(), RefusedAddress> {
        let address = plain(address);
        let (what, local) = match special::kind(address) {
            AddressKind::Never(what) => (what, false),
            _ if self.api_server.contains(&address) => ("the API server's address", false),
            AddressKind::Local(what) if !self.local => (what, true),
            AddressKind::Local(_) | AddressKind::Public => return Ok(()),
        };
        Err(RefusedAddress { what, local })
    }
}

impl Resolve for Addresses {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = self.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let (mut allowed, mut refused) = (Vec::new(), None);
            for address in found {
                match addresses.check(address.ip()) {
                    Ok(()) => allowed.push(address),
                    Err(why) => refused = Some(why),
                }
            }
            match refused {
                Some(refused) if allowed.is_empty() => Err(refused.into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

/// The IPv4 address inside an IPv6 address, if there is one. Covers IPv4-mapped, IPv4-compatible,
/// translated (`::ffff:0:0:0/96`), NAT64 (`64:ff9b::/96`, and prefixes of 96 bits in
/// `64:ff9b:1::/48`) and 6to4 (`2002::/16`) addresses.
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    match v6.segments() {
        _ if v6 == Ipv6Addr::UNSPECIFIED || v6 == Ipv6Addr::LOCALHOST => address,
        [0, 0, 0, 0, 0, 0xffff | 0, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => v4(high, low),
        // Use the inner address only if it is never allowed. Otherwise the rule of the block
        // applies.
        [0x64, 0xff9b, 1, _, _, _, high, low] => match special::kind(v4(high, low)) {
            AddressKind::Never(_) => v4(high, low),
            _ => address,
        },
        _ => address,
    }
}

fn v4(high: u16, low: u16) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
}

#[cfg(test)]
mod tests;
