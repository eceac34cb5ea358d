//! Attention. The operator for inference takes lengths from the host: what a captured step reads of them must be given anew
//! before every replay. The one with a mask reads it on the device, at the price of always going over the whole context; it is
//! also the only one that takes single precision (documentation of `aclnnFusedInferAttentionScoreV2` and
//! `aclnnFlashAttentionScore`, data types).

#![allow(unsafe_code)]

use std::{ptr::null_mut, rc::Rc};

use super::{
    AttentionBy,
    launch::{Call, Work},
    lower::{Buffer, Lowering},
    memory::{Argument, Memory, Shape, Type},
};
use crate::{Error, program::BufId};

/// Batch, sequence, heads, width of a head.
const LAYOUT: &std::ffi::CStr = c"BSND";
/// As many tokens before and after as there may be.
const ANY: i64 = i32::MAX as i64;
/// Side of the mask that stands for a causal one of any size (`sparseMode` 3).
pub(super) const CAUSAL: usize = 2048;
/// `sparseMode`: the mask as it is, and causal from the lower right corner.
const AS_GIVEN: i64 = 0;
const RIGHT_DOWN: i64 = 3;

impl AttentionBy {
    /// What attention of this type goes by: there is no operator with lengths for single precision.
    pub(super) fn of(self, dtype: Type) -> Self {
        if dtype == Type::F32 { Self::Mask } else { self }
    }
}

impl Lowering<'_> {
    /// The calls of attention.
    pub(super) fn attention(&self, qkv: BufId, layer: u16, out: BufId) -> Result<Vec<Work>, Error> {
        let config = self.config;
        let shape = self.program.shape;
        let (sequences, each) = (shape.sequences, shape.tokens / shape.sequences.max(1));
        let dims = [sequences, each, config.heads, config.head_dim];
        let Buffer { memory, rows, width } = self.buffer(qkv)?;
        let strides = [each * width, width, config.head_dim, 1];
        let queries = self.tensor(memory, &Shape::of(&dims).stepping(&strides))?;
        let given = self.tensor(self.buffer(out)?.memory, &Shape::of(&dims))?;
        let [keys, values] = self.model.cache(layer)?;
        if self.options.attention.of(self.dtype()) == AttentionBy::Mask {
            return Ok(vec![self.masked(&queries, keys, values, &given, dims)?]);
        }
        let mut work = Vec::new();
        let queries = if rows > 1 {
            // The operator does not take queries that lie apart.
            let apart = self.scratch("queries", dims.iter().product::<usize>() * self.dtype().size())?;
            let together = self.tensor(&apart, &Shape::of(&dims))?;
            work.push(self.copy(&together, &queries));
            together
        } else {
            self.tensor(memory, &Shape::of(&dims))?
        };
        work.push(self.by_lengths(&queries, keys, values, &given, each)?);
        Ok(work)
    }

    fn by_lengths(
        &self,
        queries: &Argument,
        keys: &Rc<Memory>,
        values: &Rc<Memory>,
        out: &Argument,
        each: usize,
    ) -> Result<Work, Error> {
        let (config, plan) = (self.config, self.plan);
        let paged = plan.block != plan.context;
        let blocks = plan.elements() / (plan.block * config.kv_width()).max(1);
        let shape = if paged {
            Shape::of(&[blocks, plan.block, config.kv_width()])
        } else {
            Shape::of(&[plan.sequences, plan.context, config.kv_heads, config.head_dim])
        };
        let keys = self.api.list(keys, self.dtype(), &shape)?;
        let values = self.api.list(values, self.dtype(), &shape)?;
        let (heads, kv_heads) = (config.heads as i64, config.kv_heads as i64);
        let scale = 1.0 / (config.head_dim as f64).sqrt();
        // One query sees everything; several see what is before them.
        let causal = self.causal.filter(|_| each > 1);
        let (sparse, mask) = causal.map_or((AS_GIVEN, null_mut()), |mask| (RIGHT_DOWN, mask.handle));
        let (table, block) = if paged { (self.model.table.handle, plan.block as i64) } else { (null_mut(), 0) };
        let lengths = Rc::clone(self.lengths);
        let held = [queries, &keys, &values, out, causal.unwrap_or(out), &self.model.table];
        let operator = &self.api.operators.infer_attention;
        #[rustfmt::skip]
        let call = Call::new(self.api, operator, held, move |f, [q, k, v, o, ..], w, e| {
            let (none, lengths) = (null_mut(), lengths.borrow().handle);
            // SAFETY: arguments live as long as the call, the layout as long as the program; there are places for what is
            // given back. Rows are those of the documentation: tensors, scales of quantisation, blocks and padding, scales of
            // the cache, shared prefix, numbers, results.
            unsafe {
                f(
                    q, k, v, none, mask, none, lengths,
                    none, none, none, none, none, none, none,
                    table, none, none,
                    none, none, none, none,
                    none, none, none,
                    heads, scale, ANY, ANY, LAYOUT.as_ptr(), kv_heads, sparse, 0, block, 0, false, 0, 0,
                    o, none, w, e,
                )
            }
        });
        Ok(Work::Call(call.varying()))
    }

    fn masked(
        &self,
        queries: &Argument,
        keys: &Rc<Memory>,
        values: &Rc<Memory>,
        out: &Argument,
        [sequences, each, heads, head_dim]: [usize; 4],
    ) -> Result<Work, Error> {
        let plan = self.plan;
        if plan.block != plan.context {
            return Err(Error::Unavailable {
                backend: "ascend",
                what: "attention by a mask, the only one for single precision, takes no cache in blocks; leave --kv-block \
                       out, or use --dtype bf16 with --attention-by lengths"
                    .to_owned(),
            });
        }
        let shape = Shape::of(&[sequences, plan.context, self.config.kv_heads, head_dim]);
        let (keys, values) = (self.tensor(keys, &shape)?, self.tensor(values, &shape)?);
        let rows = [sequences, heads, each, 8];
        let bytes = rows.iter().product::<usize>() * 4;
        let beside = |what| self.api.tensor(&self.scratch(what, bytes)?, Type::F32, &Shape::of(&rows));
        let (most, sums) = (beside("greatest scores")?, beside("sums of shares")?);
        // Reserved by the documentation: an empty tensor.
        let empty = self.tensor(&self.scratch("nothing", 32)?, &Shape::of(&[0]))?;
        let mask = self.inputs.mask.as_ref();
        let mask = mask.ok_or_else(|| Error::Request("the program has no mask; prepare it anew".to_owned()))?;
        let (scale, heads) = (1.0 / (head_dim as f64).sqrt(), heads as i64);
        let held = [queries, &keys, &values, mask, &most, &sums, &empty, out];
        let operator = &self.api.operators.masked_attention;
        #[rustfmt::skip]
        let call = Call::new(self.api, operator, held, move |f, handles, w, e| {
            let [q, k, v, mask, most, sums, empty, o] = handles;
            let none = null_mut();
            // SAFETY: as above. Rows: tensors, numbers, results.
            unsafe {
                f(
                    q, k, v, none, none, none, mask, none,
                    scale, 1.0, ANY, ANY, heads, LAYOUT.as_ptr(), 0, AS_GIVEN,
                    most, sums, empty, o, w, e,
                )
            }
        });
        Ok(Work::Call(call))
    }
}
