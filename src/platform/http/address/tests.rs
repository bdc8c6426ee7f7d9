use super::*;

const API_SERVER: [&str; 2] = ["10.96.0.1", "fd00::1"];

fn addresses(local: bool) -> Addresses {
    Addresses {
        api_server: API_SERVER.map(|text| text.parse().unwrap()).to_vec(),
        local,
    }
}

/// The description of a refused address, and if the administrator may allow it.
fn refused(address: &str) -> Option<(&'static str, bool)> {
    let check = |local| addresses(local).check(address.parse().unwrap()).err();
    let (by_default, named) = (check(false), check(true));
    let refusal = by_default.map(|refused| (refused.what, refused.local));
    assert_eq!(
        named.is_none(),
        refusal.is_none_or(|(_, local)| local),
        "{address}"
    );
    refusal
}

/// The expected result of [`refused`], and its addresses. They are the first and last (or only)
/// address of each block in IANA's special-purpose registries of 2025, and their neighbours.
type Judged = (Option<(&'static str, bool)>, &'static [&'static str]);

const JUDGED: &[Judged] = &[
    (
        Some(("an unspecified address", false)),
        &[
            "0.0.0.0",
            "0.1.2.3",
            "0.255.255.255",
            "::",
            "::ffff:0.0.0.0",
        ],
    ),
    (
        Some(("a loopback address", false)),
        &[
            "127.0.0.1",
            "127.255.3.4",
            "::1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
        ],
    ),
    (
        Some(("a link-local address", false)),
        &[
            "169.254.0.0",
            "169.254.169.254",
            "169.254.255.255",
            "fe80::1",
            "febf::1",
        ],
    ),
    (
        Some(("a multicast address", false)),
        &["224.0.0.1", "239.255.255.255", "ff02::1"],
    ),
    (Some(("the broadcast address", false)), &["255.255.255.255"]),
    (
        Some(("the address of a cloud's metadata service", false)),
        &[
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "fd00:42::42",
        ],
    ),
    (
        Some(("a Teredo address", false)),
        &["2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
    ),
    (
        Some(("the API server's address", false)),
        &[
            "10.96.0.1",
            "fd00::1",
            "::ffff:10.96.0.1",
            "64:ff9b::10.96.0.1",
        ],
    ),
    (
        Some(("a private address", true)),
        &[
            "10.0.0.0",
            "10.255.255.255",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.0",
            "192.168.255.255",
            "fc00::1",
            "fdff::1",
        ],
    ),
    (
        Some(("a shared address of a carrier", true)),
        &["100.64.0.0", "100.127.255.255"],
    ),
    (
        Some(("an address for documentation", true)),
        &[
            "192.0.2.1",
            "198.51.100.1",
            "203.0.113.255",
            "2001:db8::1",
            "3fff::1",
            "3fff:fff::1",
        ],
    ),
    (
        Some(("an address for benchmarks", true)),
        &["198.18.0.0", "198.19.255.255"],
    ),
    (
        Some(("a reserved address", true)),
        &[
            "192.0.0.0",
            "192.0.0.8",
            "192.0.0.9",
            "192.0.0.170",
            "192.88.99.1",
            "192.88.99.2",
            "240.0.0.1",
            "255.255.255.254",
            "64:ff9b:1::808:808",
            "100::1",
            "100:0:0:1::1",
            "2001:1::1",
            "2001:2::1",
            "2001:3::1",
            "2001:4:112::1",
            "2001:10::1",
            "2001:20::1",
            "2001:30::1",
            "2001:1ff:ffff::1",
            "4000::1",
            "5f00::1",
            "fec0::1",
        ],
    ),
    (
        None,
        &[
            "1.0.0.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "168.63.129.17",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.31.196.1",
            "192.52.193.1",
            "192.175.48.1",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2000::1",
            "2001:200::1",
            "2606:4700::1111",
            "2620:4f:8000::1",
            "3ffe:ffff::1",
        ],
    ),
];

#[test]
fn which_addresses_are_called() {
    for (expected, addresses) in JUDGED {
        for address in *addresses {
            assert_eq!(refused(address), *expected, "{address}");
        }
    }
}

/// Each IPv6 form that contains an IPv4 address gets the result of that address.
#[test]
fn an_address_inside_another_one_is_judged() {
    for (high, low, inner) in [
        (0x7f00, 1, "127.0.0.1"),
        (0xa9fe, 0xa9fe, "169.254.169.254"),
        (0xa83f, 0x8110, "168.63.129.16"),
        (0xa60, 1, "10.96.0.1"),
        (0xa00, 1, "10.0.0.1"),
        (0x6440, 1, "100.64.0.1"),
        (0x808, 0x808, "8.8.8.8"),
    ] {
        let expected = refused(inner);
        for outer in [
            format!("::ffff:{high:x}:{low:x}"),
            format!("::{high:x}:{low:x}"),
            format!("::ffff:0:{high:x}:{low:x}"),
            format!("64:ff9b::{high:x}:{low:x}"),
            format!("2002:{high:x}:{low:x}::1"),
        ] {
            assert_eq!(refused(&outer), expected, "{outer} stands for {inner}");
        }
        // The prefix of a private network: public addresses behind it are not reached over the
        // public internet.
        let own = format!("64:ff9b:1::{high:x}:{low:x}");
        let expected =
            expected.filter(|(what, local)| !local && *what != "the API server's address");
        assert_eq!(
            refused(&own),
            expected.or(Some(("a reserved address", true))),
            "{own} stands for {inner}"
        );
    }
    // The API server's address may be written in another form.
    let reach = Reach {
        api_server: vec!["::ffff:192.31.196.1".parse().unwrap()],
        ..Reach::default()
    };
    let addresses = Addresses::of(&Url::parse("https://h/v2").unwrap(), &reach);
    assert!(addresses.check("192.31.196.1".parse().unwrap()).is_err());
}

/// Checks the host of a URL that is an address, with these patterns of allowed platforms.
fn check_literal(url: &str, platforms: &[&str]) -> Result<(), RefusedAddress> {
    let platforms = platforms
        .iter()
        .map(|pattern| pattern.parse().unwrap())
        .collect();
    let reach = Reach {
        platforms,
        ..Reach::default()
    };
    let url = Url::parse(url).unwrap();
    Addresses::of(&url, &reach).check_literal(&url)
}

#[test]
fn an_address_of_this_machine_is_refused_in_every_spelling() {
    for host in [
        "127.0.0.1",
        "127.1:8443",
        "2130706433",
        "0x7f.0.0.1",
        "0x7f000001",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "１２７.0.0.1",
        "0",
        "[::1]",
        "[0:0:0:0:0:0:0:1]:8443",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::169.254.169.254]",
        "[2002:a9fe:a9fe::]",
        "0xa9fea9fe",
        "2852039166",
        "[fd00:ec2::254]",
    ] {
        let platform = format!("https://{host}");
        let refused = check_literal(&format!("{platform}/v2"), &[&platform]).unwrap_err();
        assert!(!refused.local, "{host}");
    }
}

#[test]
fn a_private_address_needs_a_pattern_in_every_spelling() {
    for host in [
        "10.0.0.1",
        "0xa000001",
        "167772161",
        "012.0.0.1",
        "10.1",
        "[fd00::1]",
        "[::ffff:10.0.0.1]",
        "192.168.1",
    ] {
        let platform = format!("https://{host}");
        let url = format!("{platform}/v2");
        assert!(check_literal(&url, &[]).unwrap_err().local, "{url}");
        assert_eq!(check_literal(&url, &[&platform]), Ok(()), "{url}");
    }
}

#[test]
fn public_addresses_and_names_pass() {
    for url in [
        "https://8.8.8.8/v2",
        "https://localhost/v2",
        "https://127.example/v2",
    ] {
        assert_eq!(check_literal(url, &[]), Ok(()), "{url}");
    }
}

/// A pattern with a star matches names that others may choose.
#[test]
fn only_a_host_that_is_written_in_full_may_be_private() {
    for (platforms, may) in [
        (&[][..], false),
        (&["https://*.example.com"], false),
        (&["https://api.example.com:8443"], false),
        (&["https://other.example.com"], false),
        (&["https://api.example.com"], true),
        (&["https://*.example.com", "https://api.example.com"], true),
    ] {
        let reach = Reach {
            platforms: platforms
                .iter()
                .map(|pattern| pattern.parse().unwrap())
                .collect(),
            ..Reach::default()
        };
        let addresses = Addresses::of(&Url::parse("https://api.example.com/v2").unwrap(), &reach);
        assert_eq!(
            addresses.check("10.0.0.1".parse().unwrap()).is_ok(),
            may,
            "{platforms:?}"
        );
    }
}
