//! The stretch of time that is seen: zoom, pan and the ticks of its ruler, in whole nanoseconds throughout.

use model::{Ns, Span};

use report::units;

/// Most that can be seen beside the capture itself, as a part of it: enough to see that it ends.
const BESIDE: i64 = 20;

/// The part of `extent` that is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// What is seen.
    pub span: Span,
    extent: Span,
}

impl Window {
    /// All of a capture.
    pub fn all(extent: Span) -> Self {
        let extent = Span::new(extent.start, extent.end.max(extent.start.saturating_add(1)));
        let beside = (extent.len() / 50).max(1);
        let span = Span::new(extent.start.saturating_sub(beside), extent.end.saturating_add(beside));
        Self { span, extent }
    }

    /// Takes another extent of the capture; what is seen stays.
    pub fn grow(&mut self, extent: Span) {
        self.extent = Self::all(extent).extent;
    }

    /// Shows `span` with a little on either side.
    pub fn fit(&mut self, span: Span) {
        let beside = (span.len() / 8).max(2);
        self.place(span.start.saturating_sub(beside), span.len().saturating_add(2 * beside));
    }

    /// Shows `span` and nothing else.
    pub fn show(&mut self, span: Span) {
        self.place(span.start, span.len());
    }

    /// Shows `span` with a quarter of its length on either side.
    pub fn around(&mut self, span: Span) {
        let beside = (span.len() / 4).max(2);
        self.place(span.start.saturating_sub(beside), span.len().saturating_add(2 * beside));
    }

    /// Shows `numerator / denominator` as much time, with `around` where it was on the screen. `width` columns never show
    /// less than as many nanoseconds.
    pub fn zoom(&mut self, around: Ns, (numerator, denominator): (i64, i64), width: u16) {
        let around = around.clamp(self.span.start, self.span.end);
        let scale = |ns: Ns| i128::from(ns) * i128::from(numerator) / i128::from(denominator.max(1));
        let most = i128::from(Self::all(self.extent).span.len());
        let len = scale(self.span.len()).clamp(i128::from(width.max(2)), most.max(i128::from(width.max(2))));
        let before = i128::from(around.saturating_sub(self.span.start)) * len / i128::from(self.span.len().max(1));
        self.place(around.saturating_sub(before as Ns), len as Ns);
    }

    /// Moves by `numerator / denominator` of what is seen.
    pub fn pan(&mut self, numerator: i64, denominator: i64) {
        let by = i128::from(self.span.len()) * i128::from(numerator) / i128::from(denominator.max(1));
        self.place(self.span.start.saturating_add(by as Ns), self.span.len());
    }

    /// Moves as little as shows `t`, with some time around it.
    pub fn reveal(&mut self, t: Ns) {
        if !self.span.contains(t) {
            self.place(t.saturating_sub(self.span.len() / 3), self.span.len());
        }
    }

    /// Shows `len` from `start` on; some of the capture always stays in sight.
    fn place(&mut self, start: Ns, len: Ns) {
        let len = len.max(2);
        let beside = len / BESIDE + 1;
        let (least, most) = (self.extent.start.saturating_sub(beside), self.extent.end.saturating_add(beside));
        let start = start.min(most.saturating_sub(len)).max(least.min(most.saturating_sub(len).max(least)));
        self.span = Span::new(start, start.saturating_add(len));
    }

    /// The column of `width` in which `t` is seen.
    pub fn column(&self, t: Ns, width: u16) -> Option<u16> {
        if !self.span.contains(t) {
            return None;
        }
        let part = i128::from(t - self.span.start) * i128::from(width) / i128::from(self.span.len().max(1));
        Some((part as u16).min(width.saturating_sub(1)))
    }

    /// The time at which a column of `width` begins.
    pub fn at(&self, column: u16, width: u16) -> Ns {
        let part = i128::from(self.span.len()) * i128::from(column) / i128::from(width.max(1));
        self.span.start.saturating_add(part as Ns)
    }

    /// Times of the ticks, in steps of 1, 2 or 5 powers of ten, at least `apart` columns from each other; counted from the
    /// start of the capture.
    pub fn ticks(&self, width: u16, apart: u16) -> Vec<Ns> {
        let least = i128::from(self.span.len()) * i128::from(apart) / i128::from(width.max(1));
        let mut power: i128 = 1;
        while power * 10 <= least {
            power *= 10;
        }
        let step = [1, 2, 5, 10].into_iter().map(|m| power * m).find(|step| *step >= least);
        // A step that is longer than time itself has no second tick.
        let Some(step) = step.and_then(|step| Ns::try_from(step).ok()) else { return Vec::new() };
        let zero = self.extent.start;
        let first = self.span.start.saturating_sub(zero).div_euclid(step).saturating_mul(step);
        std::iter::successors(Some(zero.saturating_add(first)), |t| t.checked_add(step))
            .skip_while(|t| *t < self.span.start)
            .take_while(|t| *t < self.span.end)
            .take(usize::from(width))
            .collect()
    }

    /// Time from the start of the capture.
    pub fn since_start(&self, t: Ns) -> Ns {
        t.saturating_sub(self.extent.start)
    }
}

/// What stands at ticks at these times. Where two of them would read the same, all but the first say how much later they are.
pub fn tick_labels(times: &[Ns]) -> Vec<String> {
    let whole: Vec<String> = times.iter().copied().map(units::time).collect();
    let (Some(first), true) = (times.first(), whole.windows(2).any(|pair| pair.first() == pair.last())) else {
        return whole;
    };
    let later = times.iter().skip(1).map(|t| format!("+{}", units::time(t.saturating_sub(*first))));
    whole.iter().take(1).cloned().chain(later).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_that_lie_closer_than_their_times_read_apart() {
        let labels = |times: &[Ns]| tick_labels(times).iter().map(|l| l.replace('\u{202f}', " ")).collect::<Vec<_>>();
        assert_eq!(labels(&[0, 20_000]), ["0 ns", "20.0 µs"]);
        let late = 11_423_080_000;
        assert_eq!(labels(&[late, late + 20_000, late + 40_000]), ["11.4 s", "+20.0 µs", "+40.0 µs"]);
        assert_eq!(labels(&[late]), ["11.4 s"]);
        assert!(labels(&[]).is_empty());
    }

    #[test]
    fn ticks_are_round_and_apart() {
        let mut window = Window::all(Span::new(1000, 1000 + 1_000_000));
        window.fit(Span::new(1000, 101_000));
        let ticks: Vec<Ns> = window.ticks(120, 14).into_iter().map(|t| window.since_start(t)).collect();
        assert_eq!(ticks, [0, 20_000, 40_000, 60_000, 80_000, 100_000]);
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_done_time_is_seen(
            start in -1i64 << 60..1i64 << 60, len in 0i64..1i64 << 61,
            deeds in proptest::collection::vec((0u8..4, -9i64..9, 0i64..1 << 61), 0..40), width in 1u16..400,
        ) {
            let extent = Span::new(start, start + len);
            let mut window = Window::all(extent);
            for (deed, by, t) in deeds {
                match deed {
                    0 => window.zoom(start + t, if by < 0 { (1, 2) } else { (2, 1) }, width),
                    1 => window.pan(by, 4),
                    2 => window.reveal(start + t % (len + 1)),
                    _ => window.fit(Span::new(start + t % (len + 1), start + len)),
                }
                let span = window.span;
                proptest::prop_assert!(span.len() >= 2);
                proptest::prop_assert!(span.start < extent.end.max(extent.start + 1) && span.end > extent.start, "{:?}", span);
                let ticks = window.ticks(width, 12);
                proptest::prop_assert!(ticks.len() <= usize::from(width));
                proptest::prop_assert!(ticks.iter().all(|t| window.column(*t, width).is_some()));
            }
        }

        #[test]
        fn zooming_keeps_what_is_pointed_at(around in 0i64..1000, width in 10u16..300) {
            let mut window = Window::all(Span::new(0, 1_000_000));
            window.fit(Span::new(around, around + 10_000));
            let before = window.column(around, width);
            window.zoom(around, (2, 3), width);
            let after = window.column(around, width);
            proptest::prop_assert!(before.zip(after).is_some_and(|(a, b)| a.abs_diff(b) <= 1), "{:?} {:?}", before, after);
        }
    }
}
