//! Debug logs of NCCL and RCCL (`NCCL_DEBUG=INFO`), and the entries of HCCL's run log: which channel takes which transport,
//! and which collectives were called.

use super::{DISTINCT, Link, LinkTable, topology};

/// Whether a line is one that this module reads.
pub fn is_known(line: &str) -> bool {
    let mut table = LinkTable::default();
    take(&mut table, line);
    !table.links.is_empty() || !table.calls.is_empty()
}

/// Takes a line of a debug log.
pub fn take(table: &mut LinkTable, line: &str) {
    let Some(message) = message(line) else {
        table.other += 1;
        return;
    };
    if let Some(version) = message.strip_prefix("NCCL version ").or(message.strip_prefix("RCCL version ")) {
        let version = version.split_whitespace().next().unwrap_or("");
        let name = message.get(..4).unwrap_or("NCCL");
        table.library.get_or_insert_with(|| format!("{name} {version}"));
    } else if let Some(channel) = message.strip_prefix("Channel ") {
        match link(channel) {
            Some(link) => count(&mut table.links, &mut table.dropped, link),
            // `Channel 00/32 : 0 1 2 …` lists a ring and no connection.
            None if channel.contains(" via ") => table.unread += 1,
            None => table.other += 1,
        }
    } else if topology::take(&mut table.topology, line) {
        table.other += 1;
    } else if let Some(call) = call(message) {
        count(&mut table.calls, &mut table.dropped, call);
    } else {
        table.unread += u64::from(message.contains(": opCount "));
        table.other += u64::from(!message.contains(": opCount "));
    }
}

/// Text behind the mark of the library's log.
fn message(line: &str) -> Option<&str> {
    let at = line.find("NCCL INFO ").map(|at| at + "NCCL INFO ".len());
    at.and_then(|at| line.get(at..)).or_else(|| line.find("Entry-Hccl").and_then(|at| line.get(at..))).map(str::trim)
}

fn count<K: Ord>(kept: &mut std::collections::BTreeMap<K, u64>, dropped: &mut u64, key: K) {
    if kept.len() >= DISTINCT && !kept.contains_key(&key) {
        *dropped += 1;
    } else {
        *kept.entry(key).or_insert(0) += 1;
    }
}

/// `00/0 : 0[0] -> 1[1] via P2P/CUMEM/read`, and the older `00 : 0[1a000] -> 1[1c000] [send] via NET/IB/0`.
fn link(channel: &str) -> Option<Link> {
    let (_, ends) = channel.split_once(':')?;
    let (ends, via) = ends.split_once(" via ")?;
    let (from, to) = ends.split_once("->")?;
    let rank = |end: &str| end.trim().split('[').next()?.trim().parse::<u32>().ok();
    let via = via.split_whitespace().next()?.to_owned();
    Some(Link { from: rank(from)?, to: rank(to)?, via })
}

/// `AllReduce: opCount 1f sendbuff 0x… recvbuff 0x… count 4096 datatype 7 op 0 root 0 comm 0x… [nranks=8] stream 0x…`, and
/// `Entry-HcclAllReduce:tag[…], count[4096], …`.
fn call(message: &str) -> Option<(String, u64, Option<u32>)> {
    if let Some(hccl) = message.strip_prefix("Entry-Hccl") {
        let (name, fields) = hccl.split_once(':')?;
        let field = |key: &str| fields.split_once(key)?.1.split(']').next()?.parse::<u64>().ok();
        let ranks = field("ranks[").and_then(|n| u32::try_from(n).ok());
        // Other entries make communicators and move nothing.
        return Some((name.trim().to_owned(), field("count[")?, ranks));
    }
    let (name, fields) = message.split_once(": opCount ")?;
    let words: Vec<&str> = fields.split_whitespace().collect();
    let elements = words.windows(2).find(|pair| pair[0] == "count")?[1].parse().ok()?;
    let ranks = fields.split_once("[nranks=").and_then(|(_, rest)| rest.split(']').next()?.parse().ok());
    name.chars().all(char::is_alphanumeric).then(|| (name.to_owned(), elements, ranks))
}
