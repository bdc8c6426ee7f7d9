//! Addresses that are not of the public internet: the special-purpose registries of IANA, and the services that clouds have at addresses of
//! their own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use Kind::{Local, Never, Public};

/// Who may have an address called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Everybody.
    Public,
    /// Whoever installs the operator, by naming the host.
    Local(&'static str),
    /// Nobody.
    Never(&'static str),
}

const METADATA: Kind = Never("the address of a cloud's metadata service");
const PRIVATE: Kind = Local("a private address");
const RESERVED: Kind = Local("a reserved address");
const EXAMPLE: Kind = Local("an address for documentation");

/// The first block that has the address decides.
const V4: &[(Ipv4Addr, u32, Kind)] = &[
    // All of it means this machine.
    (Ipv4Addr::new(0, 0, 0, 0), 8, Never("an unspecified address")),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Never("a loopback address")),
    (Ipv4Addr::new(169, 254, 0, 0), 16, Never("a link-local address")),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Never("a multicast address")),
    (Ipv4Addr::new(255, 255, 255, 255), 32, Never("the broadcast address")),
    // Azure's wire server, Alibaba's and Oracle's metadata.
    (Ipv4Addr::new(168, 63, 129, 16), 32, METADATA),
    (Ipv4Addr::new(100, 100, 100, 200), 32, METADATA),
    (Ipv4Addr::new(192, 0, 0, 192), 32, METADATA),
    (Ipv4Addr::new(10, 0, 0, 0), 8, PRIVATE),
    (Ipv4Addr::new(172, 16, 0, 0), 12, PRIVATE),
    (Ipv4Addr::new(192, 168, 0, 0), 16, PRIVATE),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Local("a shared address of a carrier")),
    (Ipv4Addr::new(192, 0, 0, 0), 24, RESERVED),
    (Ipv4Addr::new(192, 0, 2, 0), 24, EXAMPLE),
    (Ipv4Addr::new(192, 88, 99, 0), 24, RESERVED),
    (Ipv4Addr::new(198, 18, 0, 0), 15, Local("an address for benchmarks")),
    (Ipv4Addr::new(198, 51, 100, 0), 24, EXAMPLE),
    (Ipv4Addr::new(203, 0, 113, 0), 24, EXAMPLE),
    (Ipv4Addr::new(240, 0, 0, 0), 4, RESERVED),
];

/// Outside of these nothing is given to anybody.
const V6: &[(Ipv6Addr, u32, Kind)] = &[
    (Ipv6Addr::UNSPECIFIED, 128, Never("an unspecified address")),
    (Ipv6Addr::LOCALHOST, 128, Never("a loopback address")),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, Never("a link-local address")),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, Never("a multicast address")),
    // Amazon's, Google's, Oracle's and Scaleway's.
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 32, METADATA),
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0), 32, METADATA),
    (Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0, 0), 32, METADATA),
    (Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0), 32, METADATA),
    // What it leads to stands in it inverted, behind a server of anybody's choice.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, Never("a Teredo address")),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, PRIVATE),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, RESERVED),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, EXAMPLE),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, EXAMPLE),
    (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3, Public),
];

/// Of an address that stands for itself alone.
pub(super) fn kind(address: IpAddr) -> Kind {
    match address {
        IpAddr::V4(address) => {
            let bits = address.to_bits();
            let has = |block: Ipv4Addr, length: u32| (bits ^ block.to_bits()) >> (32 - length) == 0;
            V4.iter().find(|(block, length, _)| has(*block, *length)).map_or(Public, |(.., kind)| *kind)
        }
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            let has = |block: Ipv6Addr, length: u32| (bits ^ block.to_bits()) >> (128 - length) == 0;
            V6.iter().find(|(block, length, _)| has(*block, *length)).map_or(RESERVED, |(.., kind)| *kind)
        }
    }
}
