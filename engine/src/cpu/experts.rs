//! A mixture of experts: which tokens go to which, products with the matrices of each, and the sum of what they made.

#![allow(unsafe_code)]

use super::{
    kernels::{Kernels, TILE_ROWS},
    linear::{Sums, Tiles},
    memory::Rows,
    ops::Part,
};
use crate::Tensor;

/// The experts with the greatest scores of each token, the first of equal ones, and their shares of e^score: among all
/// experts, or among themselves where they are `normed`.
pub(super) fn route(part: Part, scores: Rows, normed: bool, out: Rows) {
    for row in part.of(scores.rows, 1) {
        // SAFETY: this worker alone has the rows of its share, of two buffers.
        let (scores, out) = unsafe { (scores.row(row), out.row_mut(row)) };
        let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let share = |expert: usize| scores.get(expert).map_or(0.0, |score| (score - most).exp());
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        let (experts, weights) = out.split_at_mut(out.len() / 2);
        let among = if normed { &order[..experts.len().min(order.len())] } else { &order[..] };
        let sum: f32 = among.iter().map(|expert| share(*expert)).sum();
        for ((number, weight), expert) in experts.iter_mut().zip(weights).zip(order) {
            // Experts are far fewer than the integers that singles hold.
            (*number, *weight) = (expert as f32, share(expert) / sum);
        }
    }
}

/// The matrices of all experts, one below the other, and who goes where.
pub(super) struct ExpertLinear<'a> {
    pub weights: &'a Tensor,
    /// (tokens, 2 active)
    pub routes: Rows,
    pub sums: Sums,
}

impl ExpertLinear<'_> {
    /// This worker's columns of the products of each token with the matrix of each of its experts.
    pub(super) fn compute(&self, part: Part, kernels: &Kernels, x: Rows, out: Rows) {
        let (active, outputs) = (self.routes.width / 2, out.width);
        let count = self.weights.rows / outputs.max(1);
        let expert_of = |pair: usize| {
            // SAFETY: an operator before this one wrote the routes, and nobody does now.
            let routes = unsafe { self.routes.row(pair / active) };
            (routes[pair % active] as usize).min(count.saturating_sub(1))
        };
        let mut pairs: Vec<(usize, usize)> = (0..out.rows).map(|pair| (expert_of(pair), pair)).collect();
        pairs.sort_unstable();
        let mine = part.of(outputs, TILE_ROWS);
        for of_one in pairs.chunk_by(|a, b| a.0 == b.0) {
            let pair = |i: usize| of_one.get(i).map_or(0, |(_, pair)| *pair);
            // Rows of `x` are those of tokens or those of pairs.
            // SAFETY: nobody writes `x` while it is read: it is another buffer than `out`.
            let of_pair = |(_, pair): &(usize, usize)| unsafe { x.row(pair * x.rows / out.rows) };
            let x: Vec<&[f32]> = of_one.iter().map(of_pair).collect();
            let first = of_one.first().map_or(0, |(expert, _)| expert * outputs);
            let tiles = Tiles { weights: self.weights, first, sums: self.sums };
            tiles.compute(mine.clone(), kernels, &x, |_| 0.0, pair, out);
        }
    }
}

/// What the experts of each token made, added up by what each counts for.
pub(super) fn combine(part: Part, kernels: &Kernels, x: Rows, routes: Rows, out: Rows) {
    let active = routes.width / 2;
    let columns = part.of(out.width, 16);
    for row in 0..out.rows {
        // SAFETY: this worker alone writes the columns of its share, of another buffer than it reads.
        let (routes, out) = unsafe { (routes.row(row), out.part_mut(row, columns.clone())) };
        out.fill(0.0);
        for (weight, pair) in routes[active..].iter().zip(row * active..) {
            // SAFETY: as above.
            kernels.axpy(*weight, unsafe { x.part(pair, columns.clone()) }, out);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::{Dtype, cpu::kernels::Isa};

    const WORKERS: usize = 3;

    fn by_all(work: impl Fn(Part)) {
        (0..WORKERS).for_each(|number| work(Part { number, of: WORKERS }));
    }

    fn value(i: usize) -> f32 {
        ((i * 7919) % 2003) as f32 / 1000.0 - 1.0
    }

    #[test]
    fn tokens_go_to_the_experts_with_the_greatest_scores_by_their_shares() {
        let ln = |x: f32| x.ln();
        let mut scores = [ln(1.0), ln(5.0), ln(3.0), ln(1.0), 2.0, 2.0, 2.0, 2.0];
        for (normed, expected) in
            [(true, [1.0, 2.0, 0.625, 0.375, 0.0, 1.0, 0.5, 0.5]), (false, [1.0, 2.0, 0.5, 0.3, 0.0, 1.0, 0.25, 0.25])]
        {
            let mut routes = [7.0; 8];
            let (scores, out) = (Rows::new(&mut scores, 4), Rows::new(&mut routes, 4));
            by_all(|part| route(part, scores, normed, out));
            assert!(routes.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{routes:?}");
        }
    }

    #[test]
    fn each_token_is_multiplied_with_the_matrices_of_its_experts_and_their_results_are_weighed() {
        let (experts, active, tokens, inputs, outputs) = (5, 2, 7, 37, 22);
        let mut weights = Tensor::zeroed(Dtype::F32, experts * outputs, inputs).unwrap();
        for row in 0..experts * outputs {
            weights.set_row(row, &(0..inputs).map(|i| value(row * 41 + i)).collect::<Vec<f32>>());
        }
        let mut routes: Vec<f32> = (0..tokens)
            .flat_map(|t| [(t % experts) as f32, ((t + 3) % experts) as f32, value(t), value(t + 9)])
            .collect();
        for by_pair in [false, true] {
            let rows = if by_pair { tokens * active } else { tokens };
            let mut x: Vec<f32> = (0..rows * inputs).map(|i| value(i * 3 + 5)).collect();
            let (mut made, mut sums) = (vec![0.0; tokens * active * outputs], vec![0.0; tokens * outputs]);
            for isa in Isa::available() {
                let kernels = Kernels::of(isa).unwrap();
                let given = (Rows::new(&mut x, inputs), Rows::new(&mut routes, 2 * active));
                let (out, sum) = (Rows::new(&mut made, outputs), Rows::new(&mut sums, outputs));
                let linear = ExpertLinear { weights: &weights, routes: given.1, sums: Sums::Single };
                by_all(|part| linear.compute(part, &kernels, given.0, out));
                by_all(|part| combine(part, &kernels, out, given.1, sum));
                for (token, column) in (0..tokens).flat_map(|t| (0..outputs).map(move |c| (t, c))) {
                    let of = |slot: usize| {
                        let expert = routes[token * 4 + slot] as usize;
                        let row = if by_pair { token * active + slot } else { token };
                        let w = |i: usize| value((expert * outputs + column) * 41 + i);
                        let dot: f64 =
                            (0..inputs).map(|i| f64::from(w(i)) * f64::from(value((row * inputs + i) * 3 + 5))).sum();
                        dot * f64::from(routes[token * 4 + 2 + slot])
                    };
                    let (ours, exact) = (sums[token * outputs + column], of(0) + of(1));
                    assert!(
                        (f64::from(ours) - exact).abs() < 1e-4,
                        "{isa:?} token {token} column {column}: {ours}, {exact}"
                    );
                }
            }
        }
    }
}
