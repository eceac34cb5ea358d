//! Sizes of the caches, so that a probe knows what lies in memory and what does not.

use std::fs;

use engine::Target;

/// Last-level cache where the system does not tell it, bytes: that of large servers is larger, that of others smaller.
const ASSUMED: usize = 32 << 20;
/// Most that is read to get past a last-level cache, bytes: enough for every cache but those of several hundred MB, which
/// the rows then show for what they are by their size.
const MOST: usize = 512 << 20;

/// The data caches that the first core has, smallest first: level, and bytes.
pub fn sizes() -> Vec<(u8, usize)> {
    let mut found: Vec<(u8, usize)> = (0..8).filter_map(of_index).collect();
    found.sort_unstable();
    found
}

fn of_index(index: u32) -> Option<(u8, usize)> {
    let read = |name: &str| fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}")).ok();
    if read("type")?.trim() == "Instruction" {
        return None;
    }
    Some((read("level")?.trim().parse().ok()?, bytes(&read("size")?)?))
}

/// `32K` or `480M`.
fn bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let (number, unit) = match text.strip_suffix('K') {
        Some(number) => (number, 1 << 10),
        None => (text.strip_suffix('M')?, 1 << 20),
    };
    number.parse::<usize>().ok()?.checked_mul(unit)
}

/// Bytes of which no large part can lie in a cache: four times the last level, within reason.
pub fn beyond() -> usize {
    sizes().last().map_or(ASSUMED, |(_, bytes)| *bytes).saturating_mul(4).clamp(64 << 20, MOST)
}

/// The same of the device that is probed: what caches it has nobody says, and the largest of a GPU have 256 MB (AMD MI300X, its
/// data sheet). An OpenCL device may be this very processor, whose caches are those above.
pub fn beyond_of(target: &Target) -> usize {
    if *target == Target::Cpu { beyond() } else { MOST }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_the_kernel_writes_them() {
        assert_eq!(
            (bytes("32K\n"), bytes("480M"), bytes("5"), bytes("xK")),
            (Some(32 << 10), Some(480 << 20), None, None)
        );
        assert!((64 << 20..=MOST).contains(&beyond()));
        assert!(sizes().windows(2).all(|pair| pair[0] <= pair[1]));
    }
}
