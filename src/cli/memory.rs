//! Memory of this machine that a run may take, and whether it does: what would not fit is refused before its first byte, as the
//! system otherwise ends whichever process it likes.

use std::fs;

use engine::{Config, Dtype, Footprint, PRESETS, Shard, preset, run::RunOptions};
use report::units;

use super::exit::Usage;

/// Memory that captures may take unless it is said otherwise, bytes; `None` where the system does not say what there is.
pub fn for_captures() -> Option<u64> {
    Some(available()? / 5 * 4)
}

/// Reads a size: bytes, or a number of units of 1024 with the letter K, M, G or T.
///
/// # Errors
/// What is no size.
pub fn size(text: &str) -> Result<u64, String> {
    let upper = text.trim().to_ascii_uppercase();
    let upper = upper.strip_suffix("IB").or(upper.strip_suffix('B')).unwrap_or(&upper);
    let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let unit = units.iter().find_map(|(letter, shift)| Some((upper.strip_suffix(*letter)?, *shift)));
    let (number, shift) = unit.unwrap_or((upper, 0));
    let bytes = number.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| format!("'{text}' is no size; write bytes, or such as 500M or 8G"))
}

/// Memory that a process may still take, bytes: what is available, what the limit of its group leaves, and what its address space
/// has room for; `None` where the system does not say.
pub fn available() -> Option<u64> {
    let free = kibibytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable")? * 1024.0;
    let number = |path| fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<f64>().ok());
    let group = number("/sys/fs/cgroup/memory.max").zip(number("/sys/fs/cgroup/memory.current"));
    let left = group.map_or(f64::INFINITY, |(most, used)| (most - used).max(0.0));
    let space = fs::read_to_string("/proc/self/limits").ok().and_then(|limits| address_space(&limits));
    Some(free.min(left).min(space.unwrap_or(f64::INFINITY)) as u64)
}

/// The soft limit of the address space in `/proc/self/limits`, bytes; `None` where there is none.
fn address_space(limits: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What of it a run may take by itself: a sixteenth stays for what it records and for others; own value.
fn spare() -> Option<u64> {
    available().map(|bytes| bytes - bytes / 16)
}

/// A line of `/proc/meminfo`, in KiB.
pub fn kibibytes(meminfo: &str, key: &str) -> Option<f64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Refuses a run whose weights, cache and buffers are more than `most`, or without it than the machine has free; with the
/// figures, and what would fit. Nothing is refused where the system does not say what is free.
///
/// # Errors
/// [`Usage`] with all of that, and those of ranks that cannot have equal parts.
pub fn check(
    model: &str,
    config: &Config,
    options: &RunOptions,
    ranks: usize,
    most: Option<u64>,
) -> anyhow::Result<()> {
    let Some(limit) = most.or_else(spare) else { return Ok(()) };
    let need = Footprint::of(config, options, ranks)?;
    if need.total() <= limit {
        return Ok(());
    }
    let fits = |options: &RunOptions| Footprint::of(config, options, ranks).is_ok_and(|need| need.total() <= limit);
    let mut ways = Vec::new();
    for dtype in [Dtype::Bf16, Dtype::Q8] {
        let other = RunOptions { dtype, ..options.clone() };
        if dtype.row_bytes(1 << 10) < options.dtype.row_bytes(1 << 10) && fits(&other) {
            ways.push(format!("--dtype {} ({})", dtype.name(), bytes(Footprint::of(config, &other, ranks)?.total())));
        }
    }
    if options.batch > 1 {
        let batch = largest_below(options.batch, |batch| fits(&RunOptions { batch, ..options.clone() }));
        ways.extend(batch.map(|batch| format!("--batch {batch}")));
    }
    if options.ids.is_empty() {
        let shorter = |prompt: usize| RunOptions { prompt, ..options.clone() };
        let halves = std::iter::successors(Some(options.prompt / 2), |prompt| Some(prompt / 2));
        let prompt = halves.take_while(|prompt| *prompt > 0).find(|prompt| fits(&shorter(*prompt)));
        ways.extend(prompt.map(|prompt| format!("--prompt-len {prompt}")));
    }
    if ways.is_empty() {
        let smaller = |name: &&&str| {
            preset(name).is_some_and(|config| {
                config.part(Shard::WHOLE).is_ok()
                    && Footprint::of(&config, options, 1).is_ok_and(|need| need.total() <= limit)
            })
        };
        ways.extend(PRESETS.iter().rev().find(smaller).map(|name| format!("--model {name}")));
    }
    let ways = if ways.is_empty() { "a smaller model".to_owned() } else { ways.join(", ") };
    let together = if ranks > 1 { format!(" on {ranks} ranks of this machine") } else { String::new() };
    Err(refused(
        &format!(
            "'{model}' as {}{together} needs {} of memory: {} of weights, {} of cache and {} of buffers",
            options.dtype.name(),
            bytes(need.total()),
            bytes(need.weights),
            bytes(need.cache),
            bytes(need.buffers)
        ),
        (limit, most.is_some()),
        &format!("what fits: {ways}"),
    )
    .into())
}

/// The largest number from 1 on and below `end` that fits, where all below one that fits do too. It halves, since `end` is
/// whatever was asked for.
fn largest_below(end: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
    let (mut fitting, mut beyond) = (0, end);
    while beyond - fitting > 1 {
        let middle = fitting + (beyond - fitting) / 2;
        if fits(middle) {
            fitting = middle;
        } else {
            beyond = middle;
        }
    }
    (fitting > 0).then_some(fitting)
}

/// Refuses what needs `need` bytes, described by `what`, where there are fewer.
///
/// # Errors
/// [`Usage`] with the figures.
pub fn check_total(what: &str, need: u64, most: Option<u64>, next: &str) -> Result<(), Usage> {
    match most.or_else(spare) {
        Some(limit) if need > limit => {
            Err(refused(&format!("{what} needs {} of memory", bytes(need)), (limit, most.is_some()), next))
        }
        _ => Ok(()),
    }
}

fn refused(what: &str, (limit, is_asked): (u64, bool), next: &str) -> Usage {
    let limit = bytes(limit);
    let limit = if is_asked { format!("--max-memory allows {limit}") } else { format!("{limit} are free") };
    Usage(format!("{what}, and {limit}; {next}; --max-memory SIZE goes on with what you allow"))
}

fn bytes(bytes: u64) -> String {
    units::bytes(i64::try_from(bytes).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_size_is_bytes_or_has_a_unit_of_1024() {
        for (text, bytes) in
            [("8G", 8 << 30), ("500M", 500 << 20), ("4096", 4096), ("1 KiB", 1024), ("2gb", 2 << 30), ("1t", 1 << 40)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "G", "-1", "-1G", "1.5G", "8X", "1G1", "99999999999T"] {
            assert!(size(text).unwrap_err().contains("no size"), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_figures_and_with_what_does() {
        let config = preset("llama-3.1-8b").unwrap();
        let options = RunOptions { dtype: Dtype::F32, ..RunOptions::default() };
        let said = |options: &RunOptions, ranks, most| {
            check("llama-3.1-8b", &config, options, ranks, Some(most)).err().map(|error| error.to_string())
        };
        let refused = said(&options, 1, 20 << 30).unwrap();
        assert!(refused.contains("29.9 GiB of weights") && refused.contains("allows 20.0 GiB"), "{refused}");
        assert!(refused.contains("--dtype bf16 (15.") && refused.contains("--dtype q8"), "{refused}");
        assert_eq!(said(&options, 1, 40 << 30), None);
        let long = RunOptions { prompt: 60_000, dtype: Dtype::Bf16, ..RunOptions::default() };
        let refused = said(&long, 2, 24 << 30).unwrap();
        assert!(refused.contains("--prompt-len") && refused.contains("on 2 ranks of this machine"), "{refused}");
        let small = said(&options, 1, 1 << 30).unwrap();
        assert!(small.contains("--model "), "{small}");
        assert!(said(&options, 1, 1).unwrap().contains("a smaller model"));
    }

    #[test]
    fn a_batch_of_any_size_is_refused_at_once_with_the_largest_that_fits() {
        for end in 1..40 {
            for most in 0..40 {
                let expected = (1..end).rev().find(|n| *n <= most);
                assert_eq!(largest_below(end, |n| n <= most), expected, "{end} {most}");
            }
        }
        let config = preset("tiny").unwrap();
        for batch in [10_000_000_000, usize::MAX / 2, usize::MAX] {
            for (prompt, steps) in [(1, 1), (512, 1), (usize::MAX, 1), (1, usize::MAX), (usize::MAX, usize::MAX)] {
                let options = RunOptions { batch, prompt, steps, ..RunOptions::default() };
                let told = check("tiny", &config, &options, 1, Some(1 << 30)).unwrap_err().to_string();
                assert!(told.contains("a smaller --batch") || told.contains("what fits: --batch"), "{told}");
            }
        }
    }

    #[test]
    fn a_limit_of_the_address_space_counts_and_none_does_not() {
        let limits = |soft: &str| {
            format!("Limit   Soft Limit  Hard Limit  Units\nMax address space   {soft}   unlimited  bytes\n")
        };
        assert_eq!(address_space(&limits("2048000000")), Some(2_048_000_000.0));
        assert_eq!(address_space(&limits("unlimited")), None);
    }
}
