//! Attention: for inference, where the host says how long sequences are, and for training, where a mask says what is seen.

#![allow(unsafe_code)]

use std::{
    ffi::{CStr, c_char},
    sync::Arc,
};

use super::{contiguous, floats, operator, shaped};
use crate::{
    error::{self, Outcome, fault},
    executor::Plan,
    state::{Handle, State},
    stream::Kind,
    tensor::{Type, View},
};

/// Side of the mask of `sparseMode` 3, which stands for one of any size.
const CAUSAL: usize = 2048;

/// Layout of the dimensions, which must be batch, sequence, heads, width of a head.
fn layout(text: *const c_char) -> Outcome {
    if text.is_null() {
        return fault(error::NULL, "'inputLayout' is a null pointer");
    }
    // SAFETY: not null, and a string by its documentation.
    let text = unsafe { CStr::from_ptr(text) };
    if text != c"BSND" {
        return fault(error::INVALID, format!("'inputLayout' is {text:?}; only BSND is simulated"));
    }
    Ok(())
}

/// What a query sees: keys and values of a head by sequence and position, and which of them.
struct Seen<'s> {
    /// Offsets of the key, or value, of (sequence, position, head).
    key: &'s dyn Fn(usize, usize, usize) -> i64,
    /// Positions of a sequence.
    length: &'s dyn Fn(usize) -> usize,
    /// Whether (sequence, query, position) is hidden.
    hidden: &'s dyn Fn(usize, usize, usize) -> bool,
}

/// out = softmax(scale · q kᵀ) v, head by head; gives the greatest score and the sum of each row.
fn attend(
    q: &View,
    [keys, values]: [&View; 2],
    out: &View,
    kv_heads: usize,
    scale: f32,
    seen: &Seen<'_>,
) -> Vec<[f32; 2]> {
    let &[batch, length, heads, width] = q.tensor.dims.as_slice() else { return Vec::new() };
    let mut rows = vec![[0f32; 2]; batch * heads * length];
    for sequence in 0..batch {
        for query in 0..length {
            for head in 0..heads {
                let own: Vec<f32> = (0..width).map(|d| q.get(q.offset(&[sequence, query, head, d]))).collect();
                let shared = head / (heads / kv_heads);
                let visible: Vec<usize> =
                    (0..(seen.length)(sequence)).filter(|at| !(seen.hidden)(sequence, query, *at)).collect();
                let scores: Vec<f32> = visible
                    .iter()
                    .map(|at| {
                        let key = (seen.key)(sequence, *at, shared);
                        scale * own.iter().enumerate().map(|(d, q)| q * keys.get(key + d as i64)).sum::<f32>()
                    })
                    .collect();
                let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let shares: Vec<f32> = scores.iter().map(|score| (score - most).exp()).collect();
                let sum: f32 = shares.iter().sum();
                let mut mixed = vec![0f32; width];
                for (at, share) in visible.iter().zip(&shares) {
                    let value = (seen.key)(sequence, *at, shared);
                    for (d, mixed) in mixed.iter_mut().enumerate() {
                        *mixed += share * values.get(value + d as i64);
                    }
                }
                for (d, mixed) in mixed.iter().enumerate() {
                    out.set(out.offset(&[sequence, query, head, d]), if sum > 0.0 { mixed / sum } else { 0.0 });
                }
                if let Some(row) = rows.get_mut((sequence * heads + head) * length + query) {
                    *row = [most, sum];
                }
            }
        }
    }
    rows
}

/// Dimensions of queries, whose heads must be a multiple of those of the keys.
fn queries(q: &View, out: &View, heads: i64, kv_heads: i64) -> Outcome<(usize, usize, usize, usize)> {
    let &[batch, length, own, width] = q.tensor.dims.as_slice() else {
        return fault(error::INVALID, format!("'query' has dimensions {:?} where four are meant", q.tensor.dims));
    };
    shaped(out, "attentionOut", &q.tensor.dims)?;
    let kv = usize::try_from(kv_heads).unwrap_or(0);
    if own as i64 != heads || kv == 0 || !own.is_multiple_of(kv) {
        return fault(error::INVALID, format!("{own} heads of queries, said to be {heads}, with {kv_heads} of keys"));
    }
    Ok((batch, length, kv, width))
}

/// The one tensor of a list.
fn single(state: &State, list: Handle, name: &str) -> Outcome<View> {
    match state.lists.get(&list.addr()).map(Vec::as_slice) {
        Some([tensor]) => state.view(std::ptr::without_provenance_mut(*tensor), name),
        Some(_) => fault(error::INVALID, format!("'{name}' is a list of several tensors; only one is simulated")),
        None => fault(error::INVALID, format!("'{name}' is no list of tensors, or was destroyed")),
    }
}

operator!(aclnnFusedInferAttentionScoreV2GetWorkspaceSize, aclnnFusedInferAttentionScoreV2
[query, keys, values, mask, lengths_kv, table, out]
(query: Handle, keys: Handle, values: Handle, shift: Handle, mask: Handle, lengths: Handle, lengths_kv: Handle,
 dequant1: Handle, quant1: Handle, dequant2: Handle, quant2: Handle, quant_offset2: Handle, antiquant: Handle,
 antiquant_offset: Handle, table: Handle, query_padding: Handle, kv_padding: Handle, key_antiquant: Handle,
 key_antiquant_offset: Handle, value_antiquant: Handle, value_antiquant_offset: Handle, key_prefix: Handle,
 value_prefix: Handle, prefix_length: Handle, heads: i64, scale: f64, pre: i64, next: i64, input_layout: *const c_char,
 kv_heads: i64, sparse: i64, inner_precise: i64, block: i64, antiquant_mode: i64, lse_flag: bool,
 key_antiquant_mode: i64, value_antiquant_mode: i64, out: Handle, lse: Handle), |state| {
    let none = [shift, lengths, dequant1, quant1, dequant2, quant2, quant_offset2, antiquant, antiquant_offset,
        query_padding, kv_padding, key_antiquant, key_antiquant_offset, value_antiquant, value_antiquant_offset,
        key_prefix, value_prefix, prefix_length, lse];
    let modes = [antiquant_mode, key_antiquant_mode, value_antiquant_mode];
    if none.iter().any(|handle| !handle.is_null()) || modes != [0; 3] || lse_flag {
        return fault(error::INVALID, "quantisation, padding, prefixes and shifts are not simulated; give null pointers");
    }
    if !(0..=3).contains(&inner_precise) || pre < 0 || next < 0 {
        return fault(error::INVALID, format!("innerPrecise {inner_precise}, preTokens {pre}, nextTokens {next}"));
    }
    layout(input_layout)?;
    let (q, out) = (state.view(query, "query")?, state.view(out, "attentionOut")?);
    let (k, v) = (single(state, keys, "key")?, single(state, values, "value")?);
    if floats(&[(&q, "query"), (&k, "key"), (&v, "value"), (&out, "attentionOut")])? == Type::F32 {
        return fault(error::INVALID, "FLOAT is not taken, only FLOAT16 and BFLOAT16");
    }
    for (view, name) in [(&q, "query"), (&k, "key"), (&v, "value"), (&out, "attentionOut")] {
        contiguous(view, name)?;
    }
    let (batch, length, kv, width) = queries(&q, &out, heads, kv_heads)?;
    shaped(&v, "value", &k.tensor.dims)?;
    let table = state.optional(table, "blockTable")?;
    let most = cached(&k, table.as_ref(), [batch, length, kv, width], block)?;
    match (sparse, state.optional(mask, "attenMask")?) {
        (0, None) if length == 1 => (),
        (3, Some(mask)) if matches!(mask.tensor.dtype, Type::Bool | Type::I8 | Type::U8) => {
            shaped(&mask, "attenMask", &[CAUSAL, CAUSAL])?;
        }
        _ => return fault(error::INVALID, format!("sparseMode {sparse} with this mask for {length} queries is not simulated")),
    }
    let lengths = state.ints(lengths_kv, "actualSeqLengthsKv")?;
    let fits = |length: &i64| usize::try_from(*length).is_ok_and(|length| (1..=most).contains(&length));
    if lengths.len() != batch || !lengths.iter().all(fits) {
        let text = format!("'actualSeqLengthsKv' is {lengths:?} for {batch} sequences of at most {most}");
        return fault(error::INVALID, text);
    }
    let read: i64 = lengths.iter().sum();
    let flops = 4.0 * read as f64 * (length * kv * width) as f64 * (heads as f64 / kv as f64);
    let views = [&q.clone(), &out.clone()];
    let plan = Plan::new(&views, flops, work(q, [k, v], out, table, lengths, kv, scale as f32));
    Ok(Plan { kind: Kind::Updatable, ..plan }.with_workspace(16 << 10))
});

/// Makes sure that keys lie as one block for each sequence, or in blocks by a table; gives the positions of a sequence.
fn cached(k: &View, table: Option<&View>, [batch, length, kv, width]: [usize; 4], block: i64) -> Outcome<usize> {
    let Some(table) = table else {
        let &[_, most, ..] = k.tensor.dims.as_slice() else { return fault(error::INVALID, "'key' has no positions") };
        shaped(k, "key", &[batch, most, kv, width])?;
        return Ok(most);
    };
    let &[_, own, hidden] = k.tensor.dims.as_slice() else {
        return fault(error::INVALID, "'key' in blocks has three dimensions: blocks, positions, heads · width");
    };
    let aligned = if length > 1 { 128 } else { 16 };
    if own as i64 != block || !own.is_multiple_of(aligned) || own > 512 || hidden != kv * width {
        let text = format!(
            "blocks of {own} (said to be {block}) for {length} queries must be multiples of {aligned}, at most 512"
        );
        return fault(error::INVALID, text);
    }
    let &[sequences, each] = table.tensor.dims.as_slice() else {
        return fault(error::INVALID, "'blockTable' is no matrix");
    };
    if sequences != batch || table.tensor.dtype != Type::I32 {
        return fault(
            error::INVALID,
            format!("'blockTable' of {sequences} sequences and type {:?}", table.tensor.dtype),
        );
    }
    Ok(each * own)
}

fn work(
    q: View,
    [k, v]: [View; 2],
    out: View,
    table: Option<View>,
    lengths: Arc<Vec<i64>>,
    kv: usize,
    scale: f32,
) -> impl Fn() -> Outcome + Send + Sync {
    let width = q.tensor.dims.last().copied().unwrap_or(0);
    let block = k.tensor.dims.get(1).copied().unwrap_or(1).max(1);
    move || {
        [&k, &v].into_iter().chain(&table).try_for_each(View::alive)?;
        let rows = q.tensor.dims.get(1).copied().unwrap_or(0);
        let length = |sequence: usize| lengths.get(sequence).map_or(0, |length| *length as usize);
        let key = |sequence: usize, at: usize, head: usize| {
            let own = table.as_ref().map_or(sequence as i64, |table| table.int(table.offset(&[sequence, at / block])));
            ((own * block as i64 + (at % block) as i64) * kv as i64 + head as i64) * width as i64
        };
        // The last query sees everything, each before it one position less.
        let hidden = |sequence: usize, query: usize, at: usize| at + rows > length(sequence) + query;
        let last = k.tensor.count() as i64 - width as i64;
        let beyond = (0..q.tensor.dims.first().copied().unwrap_or(0))
            .any(|sequence| (0..length(sequence)).any(|at| !(0..=last).contains(&key(sequence, at, kv - 1))));
        if beyond {
            return fault(error::KERNEL, "a block of the table is beyond the cache");
        }
        attend(&q, [&k, &v], &out, kv, scale, &Seen { key: &key, length: &length, hidden: &hidden });
        Ok(())
    }
}

operator!(aclnnFlashAttentionScoreGetWorkspaceSize, aclnnFlashAttentionScore
[query, key, value, mask, most, sum, softmax, out]
(query: Handle, key: Handle, value: Handle, shift: Handle, drop_mask: Handle, padding: Handle, mask: Handle,
 prefix: Handle, scale: f64, keep: f64, pre: i64, next: i64, heads: i64, input_layout: *const c_char, inner_precise: i64,
 sparse: i64, most: Handle, sum: Handle, softmax: Handle, out: Handle), |state| {
    if [shift, drop_mask, padding, prefix].iter().any(|handle| !handle.is_null()) || keep != 1.0 {
        return fault(error::INVALID, "shifts, dropping and prefixes are not simulated");
    }
    if inner_precise != 0 || sparse != 0 || pre < 0 || next < 0 {
        return fault(error::INVALID, format!("innerPrecise {inner_precise} or sparseMode {sparse} is not simulated"));
    }
    layout(input_layout)?;
    let (q, k, v) = (state.view(query, "query")?, state.view(key, "key")?, state.view(value, "value")?);
    let (mask, out) = (state.view(mask, "attenMask")?, state.view(out, "attentionOut")?);
    let (most, sum) = (state.view(most, "softmaxMax")?, state.view(sum, "softmaxSum")?);
    state.view(softmax, "softmaxOut")?;
    floats(&[(&q, "query"), (&k, "key"), (&v, "value"), (&out, "attentionOut")])?;
    let kv_heads = k.tensor.dims.get(2).copied().unwrap_or(0) as i64;
    let (batch, length, kv, width) = queries(&q, &out, heads, kv_heads)?;
    let positions = k.tensor.dims.get(1).copied().unwrap_or(0);
    shaped(&k, "key", &[batch, positions, kv, width])?;
    shaped(&v, "value", &k.tensor.dims)?;
    shaped(&mask, "attenMask", &[batch, 1, length, positions])?;
    if !matches!(mask.tensor.dtype, Type::Bool | Type::U8) || width > 768 {
        return fault(error::INVALID, format!("a mask of type {:?}, or heads of {width}", mask.tensor.dtype));
    }
    for (view, name) in [(&most, "softmaxMax"), (&sum, "softmaxSum")] {
        shaped(view, name, &[batch, heads.unsigned_abs() as usize, length, 8])?;
        if view.tensor.dtype != Type::F32 {
            return fault(error::INVALID, format!("'{name}' must be of type FLOAT"));
        }
    }
    let flops = 4.0 * (batch * length * positions) as f64 * (heads as f64 * width as f64);
    let views = [&q.clone(), &k.clone(), &v.clone(), &mask.clone(), &out.clone(), &most.clone(), &sum.clone()];
    Ok(Plan::new(&views, flops, move || {
        let key = |sequence: usize, at: usize, head: usize| k.offset(&[sequence, at, head, 0]);
        let hidden =
            |sequence: usize, query: usize, at: usize| mask.int(mask.offset(&[sequence, 0, query, at])) != 0;
        let seen = Seen { key: &key, length: &|_| positions, hidden: &hidden };
        let rows = attend(&q, [&k, &v], &out, kv, scale as f32, &seen);
        let spread = |which: usize| rows.iter().flat_map(|row| [row[which]; 8]).collect::<Vec<_>>();
        most.store(&spread(0));
        sum.store(&spread(1));
        Ok(())
    })
    .with_workspace(16 << 10))
});
