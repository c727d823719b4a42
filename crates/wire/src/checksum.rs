//! The Internet checksum (RFC 1071), one of the largest costs of a packet if no device computes it.

/// The sum of the 16-bit words of `bytes` in the machine's byte order, as RFC 1071 §2(B) allows. An odd byte at the end is
/// followed by a zero.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<32>();
    // Words of 32 bits in sums of 64: nothing is carried until the end, so the compiler adds several at once.
    let mut sums = [0u64; 8];
    for block in blocks {
        let (words, _) = block.as_chunks::<4>();
        for (sum, word) in sums.iter_mut().zip(words) {
            *sum += u64::from(u32::from_ne_bytes(*word));
        }
    }
    let (words, last) = rest.as_chunks::<2>();
    let words = words.iter().copied().chain(last.first().map(|byte| [*byte, 0]));
    sums.iter().sum::<u64>() + words.map(|word| u64::from(u16::from_ne_bytes(word))).sum::<u64>()
}

/// The sum of a pseudo-header (RFC 9293 §3.1, RFC 8200 §8.1). `addresses`: source and destination; `len`: bytes after the IP
/// header.
pub(crate) fn pseudo_header(addresses: &[u8], protocol: u8, len: usize) -> u64 {
    let [.., a, b, c, d] = len.to_be_bytes();
    sum(addresses) + sum(&[a, b, c, d, 0, 0, 0, protocol])
}

/// True if a sum that includes the checksum shows no damage. In one's complement (RFC 1071), all bits clear and all bits set
/// are both zero, so a checksum of zero may be written either way.
pub(crate) fn is_intact(sum: u64) -> bool {
    fold(sum) == u16::MAX
}

/// The sum in 16 bits, in the machine's byte order. Its complement is the checksum; with the checksum included it is
/// `u16::MAX`.
pub(crate) fn fold(sum: u64) -> u16 {
    let mut sum = sum;
    while sum > u64::from(u16::MAX) {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_length_is_summed_up_as_rfc_1071_defines() {
        let bytes: Vec<u8> = (0..300u32).map(|n| (n * 77 + n / 3) as u8).collect();
        for len in 0..bytes.len() {
            let words = bytes[..len].chunks(2).map(|pair| u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
            let expected = words.fold(0u32, |sum, word| (sum + u32::from(word)) % 65_535);
            let found = u32::from(u16::from_be(fold(sum(&bytes[..len]))));
            assert_eq!(found % 65_535, expected, "{len} bytes");
        }
    }

    #[test]
    fn the_largest_sum_is_not_truncated() {
        assert_eq!(fold(sum(&vec![0xff; 1 << 20])), u16::MAX);
    }
}
