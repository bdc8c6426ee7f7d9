//! Addresses outside the public internet: IANA's special-purpose registries, and the fixed
//! addresses of cloud services.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use AddressKind::{Local, Never, Public};

/// Says if an address may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressKind {
    /// Always.
    Public,
    /// Only if the administrator names the host.
    Local(&'static str),
    /// Never.
    Never(&'static str),
}

const METADATA: AddressKind = Never("the address of a cloud's metadata service");
const PRIVATE: AddressKind = Local("a private address");
const RESERVED: AddressKind = Local("a reserved address");
const EXAMPLE: AddressKind = Local("an address for documentation");

/// The first matching block decides.
const V4: &[(Ipv4Addr, u32, AddressKind)] = &[
    // The whole block addresses this machine.
    (
        Ipv4Addr::new(0, 0, 0, 0),
        8,
        Never("an unspecified address"),
    ),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Never("a loopback address")),
    (
        Ipv4Addr::new(169, 254, 0, 0),
        16,
        Never("a link-local address"),
    ),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Never("a multicast address")),
    (
        Ipv4Addr::new(255, 255, 255, 255),
        32,
        Never("the broadcast address"),
    ),
    // Azure's wire server, and the metadata services of Alibaba and Oracle.
    (Ipv4Addr::new(168, 63, 129, 16), 32, METADATA),
    (Ipv4Addr::new(100, 100, 100, 200), 32, METADATA),
    (Ipv4Addr::new(192, 0, 0, 192), 32, METADATA),
    (Ipv4Addr::new(10, 0, 0, 0), 8, PRIVATE),
    (Ipv4Addr::new(172, 16, 0, 0), 12, PRIVATE),
    (Ipv4Addr::new(192, 168, 0, 0), 16, PRIVATE),
    (
        Ipv4Addr::new(100, 64, 0, 0),
        10,
        Local("a shared address of a carrier"),
    ),
    (Ipv4Addr::new(192, 0, 0, 0), 24, RESERVED),
    (Ipv4Addr::new(192, 0, 2, 0), 24, EXAMPLE),
    (Ipv4Addr::new(192, 88, 99, 0), 24, RESERVED),
    (
        Ipv4Addr::new(198, 18, 0, 0),
        15,
        Local("an address for benchmarks"),
    ),
    (Ipv4Addr::new(198, 51, 100, 0), 24, EXAMPLE),
    (Ipv4Addr::new(203, 0, 113, 0), 24, EXAMPLE),
    (Ipv4Addr::new(240, 0, 0, 0), 4, RESERVED),
];

/// Addresses outside these blocks are not assigned.
const V6: &[(Ipv6Addr, u32, AddressKind)] = &[
    (Ipv6Addr::UNSPECIFIED, 128, Never("an unspecified address")),
    (Ipv6Addr::LOCALHOST, 128, Never("a loopback address")),
    (
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0),
        10,
        Never("a link-local address"),
    ),
    (
        Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0),
        8,
        Never("a multicast address"),
    ),
    // The metadata services of Amazon, Google, Oracle and Scaleway.
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 32, METADATA),
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0), 32, METADATA),
    (Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0, 0), 32, METADATA),
    (Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0), 32, METADATA),
    // It contains its target inverted, behind a server that the author of the address chooses.
    (
        Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0),
        32,
        Never("a Teredo address"),
    ),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, PRIVATE),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, RESERVED),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, EXAMPLE),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, EXAMPLE),
    (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3, Public),
];

/// For an address that does not contain another one.
pub(super) fn kind(address: IpAddr) -> AddressKind {
    match address {
        IpAddr::V4(address) => {
            let bits = address.to_bits();
            V4.iter()
                .find(|(block, length, _)| (bits ^ block.to_bits()) >> (32 - length) == 0)
                .map_or(Public, |(.., kind)| *kind)
        }
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            V6.iter()
                .find(|(block, length, _)| (bits ^ block.to_bits()) >> (128 - length) == 0)
                .map_or(RESERVED, |(.., kind)| *kind)
        }
    }
}
