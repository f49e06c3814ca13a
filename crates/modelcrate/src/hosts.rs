//! Which addresses of the network may be connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Tells whether an address may be connected to.
pub(crate) type Rule = fn(IpAddr) -> bool;

/// Tells whether an address is one of the public Internet.
///
/// What is not: the special-purpose registries of IANA for IPv4 and IPv6, multicast, and every IPv6
/// address that carries an IPv4 one, because a gateway may send it on to a private host.
pub(crate) fn is_public(address: IpAddr) -> bool {
    is_store(address)
        && match address {
            IpAddr::V4(address) => !is_in_v4(address, &PRIVATE_V4),
            IpAddr::V6(address) => {
                is_in_v6(address, &[GLOBAL_V6]) && !is_in_v6(address, &PRIVATE_V6)
            }
        }
}

/// Tells whether an address may be one of a store, public or not: it is neither link-local nor one
/// that hands out the secrets of a cloud host, however an IPv6 address carries it.
pub(crate) fn is_store(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !is_in_v4(address, &LOCAL_V4),
        IpAddr::V6(address) => {
            let octets = address.octets();
            // 6to4 has the IPv4 address behind its prefix, all others at their end.
            let carried: Option<&[u8; 4]> = match () {
                () if is_in_v6(address, &[SIX_TO_FOUR]) => {
                    octets.get(2..).and_then(<[u8]>::first_chunk)
                }
                () if is_in_v6(address, &CARRIERS_V6) => octets.last_chunk(),
                () => None,
            };
            let carried = carried.map(|octets| Ipv4Addr::from(*octets));
            !is_in_v6(address, &LOCAL_V6) && carried.is_none_or(|v4| !is_in_v4(v4, &LOCAL_V4))
        }
    }
}

fn is_in_v4(address: Ipv4Addr, ranges: &[(Ipv4Addr, u32)]) -> bool {
    ranges.iter().any(|(start, prefix)| {
        let mask = u32::MAX.checked_shl(32_u32.saturating_sub(*prefix)).unwrap_or(0);
        address.to_bits() & mask == start.to_bits()
    })
}

fn is_in_v6(address: Ipv6Addr, ranges: &[(Ipv6Addr, u32)]) -> bool {
    ranges.iter().any(|(start, prefix)| {
        let mask = u128::MAX.checked_shl(128_u32.saturating_sub(*prefix)).unwrap_or(0);
        address.to_bits() & mask == start.to_bits()
    })
}

/// First address and length of the prefix in bits.
const PRIVATE_V4: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),       // this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),      // private use
    (Ipv4Addr::new(100, 64, 0, 0), 10),   // carrier-grade translation
    (Ipv4Addr::new(127, 0, 0, 0), 8),     // loopback
    (Ipv4Addr::new(169, 254, 0, 0), 16),  // link-local, metadata of cloud hosts
    (Ipv4Addr::new(172, 16, 0, 0), 12),   // private use
    (Ipv4Addr::new(192, 0, 0, 0), 24),    // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),    // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24),  // relays of 6to4
    (Ipv4Addr::new(192, 168, 0, 0), 16),  // private use
    (Ipv4Addr::new(198, 18, 0, 0), 15),   // benchmarking
    (Ipv4Addr::new(198, 51, 100, 0), 24), // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),  // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),     // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),     // reserved, broadcast
];

/// The only part of IPv6 that is handed out: loopback, unique local, link-local, multicast, mapped,
/// compatible and translated (`64:ff9b::/96`, `64:ff9b:1::/48`) addresses all lie outside.
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

const SIX_TO_FOUR: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16);

const PRIVATE_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments, Teredo, benchmarking
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    SIX_TO_FOUR,
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

/// Link-local addresses, the metadata services of most clouds among them, and those of others.
const LOCAL_V4: [(Ipv4Addr, u32); 4] = [
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(100, 100, 100, 200), 32), // Alibaba Cloud
    (Ipv4Addr::new(168, 63, 129, 16), 32),   // Azure
    (Ipv4Addr::new(192, 0, 0, 192), 32),     // Oracle Cloud
];

/// With those that carry an IPv4 address where a gateway decides in which bits.
const LOCAL_V6: [(Ipv6Addr, u32); 6] = [
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 32), // Amazon
    (Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42), 128), // Scaleway
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128), // Google
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32),     // Teredo
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48),  // translation of a network's own
];

/// What has an IPv4 address at its end: compatible, mapped and translated addresses.
const CARRIERS_V6: [(Ipv6Addr, u32); 3] = [
    (Ipv6Addr::UNSPECIFIED, 96),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96),
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_and_metadata_addresses_are_no_stores() {
        for address in [
            "169.254.0.0",
            "169.254.169.254",
            "169.254.255.255",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fe80::1",
            "febf:ffff::",
            "fd00:ec2::23",
            "fd00:ec2::254",
            "fd00:42::42",
            "fd20:ce::254",
            "2001::a9fe:a9fe",
            "64:ff9b:1:a9fe:a9:fe00::",
            "::169.254.169.254",
            "::ffff:169.254.169.254",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::169.254.169.254",
            "2002:a9fe:a9fe::1",
        ] {
            assert!(!is_store(address.parse().unwrap()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "10.0.0.1",
            "169.253.255.255",
            "192.168.0.1",
            "100.100.100.201",
            "::1",
            "fd00::1",
            "fec0::",
            "::ffff:10.0.0.1",
            "2002:a00:1::",
            "2606:4700::1111",
        ] {
            assert!(is_store(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn special_ranges_are_not_public() {
        // The first and the last address of each range.
        for (first, last) in [
            ("0.0.0.0", "0.255.255.255"),
            ("10.0.0.0", "10.255.255.255"),
            ("100.64.0.0", "100.127.255.255"),
            ("127.0.0.0", "127.255.255.255"),
            ("169.254.0.0", "169.254.255.255"),
            ("169.254.169.254", "169.254.169.254"),
            ("172.16.0.0", "172.31.255.255"),
            ("192.0.0.0", "192.0.0.255"),
            ("192.0.2.0", "192.0.2.255"),
            ("192.88.99.0", "192.88.99.255"),
            ("192.168.0.0", "192.168.255.255"),
            ("198.18.0.0", "198.19.255.255"),
            ("198.51.100.0", "198.51.100.255"),
            ("203.0.113.0", "203.0.113.255"),
            ("224.0.0.0", "239.255.255.255"),
            ("240.0.0.0", "255.255.255.255"),
            ("::", "::1"),
            ("::127.0.0.1", "::8.8.8.8"),
            ("::ffff:0.0.0.0", "::ffff:255.255.255.255"),
            ("64:ff9b::", "64:ff9b::255.255.255.255"),
            ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"),
            ("100::", "100::ffff:ffff:ffff:ffff"),
            ("2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff"),
            ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ] {
            for address in [first, last] {
                assert!(!is_public(address.parse().unwrap()), "{address}");
            }
        }
    }

    #[test]
    fn neighbours_of_special_ranges_are_public() {
        for address in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "191.255.255.255",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::",
            "2001:4860:4860::8888",
            "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
            "2001:db9::",
            "2003::",
            "2606:4700::1111",
            "3ffe::1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
