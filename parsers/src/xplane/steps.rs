//! Steps: the line `Steps` where the profiler drew one, else the runs of the module that has most of the time. Either becomes
//! ranges of the device called `XLA step 3`, which packs know as steps. Source: `xplane_schema.cc` (names of lines).

use model::{Category, Ns, Slice, TrackId, TrackKey, TrackKind};
use rustc_hash::FxHashMap;

use super::{
    lines::{Import, PROCESS},
    tpu::Row,
};
use crate::lanes::Account;

/// Context of the track of steps, beside the lines of the file.
const STEPS: i64 = 1;
/// Fewest runs of a module that are steps.
const FEWEST: usize = 2;

impl Import<'_> {
    /// Takes the rows of `Steps`, whose names are numbers.
    pub(super) fn steps(&mut self, track: TrackId, rows: &[Row<'_>]) {
        for (at, row) in rows.iter().enumerate() {
            let number = row.name.trim();
            match !number.is_empty() && number.len() < 20 && number.bytes().all(|b| b.is_ascii_digit()) {
                true => self.step(track, row, number),
                false => self.step(track, row, &at.to_string()),
            }
        }
    }

    /// Draws a step at each run of the module that has at least half of the time of all. A program that gives the device one
    /// operation at a time has no such module.
    pub(super) fn steps_of_modules(&mut self, (device, line): (i32, i64), rows: &[Row<'_>]) {
        // The number of the program stands behind the name: `jit_f(12190760917235803885)`.
        let mut totals: FxHashMap<i64, (Ns, usize)> = FxHashMap::default();
        let length = |row: &Row<'_>| row.end.saturating_sub(row.start);
        for row in rows {
            let (time, count) = totals.entry(row.id).or_default();
            *time = time.saturating_add(length(row));
            *count += 1;
        }
        let all = rows.iter().map(length).fold(0, Ns::saturating_add);
        let Some((module, (time, count))) = totals.into_iter().max_by_key(|(id, (time, _))| (*time, *id)) else {
            return;
        };
        if count < FEWEST || time < all / 2 {
            return;
        }
        let mut account = Account::default();
        let process = self.lanes.process(&mut *self.sink, PROCESS);
        let (kind, context) = (TrackKind::DeviceAnnotation, Some(STEPS));
        let track =
            self.lanes.track(&mut *self.sink, TrackKey { kind, process, device: Some(device), context, id: line });
        let name: String =
            rows.iter().find(|row| row.id == module).iter().flat_map(|row| row.name.chars().take(80)).collect();
        self.sink.name_track(track, &format!("runs of {name}"));
        let mut runs: Vec<&Row<'_>> = rows.iter().filter(|row| row.id == module).collect();
        runs.sort_by_key(|row| (row.start, row.end));
        for (at, row) in runs.into_iter().enumerate() {
            account.read += 1;
            account.keep(row.start, row.end);
            self.step(track, row, &at.to_string());
        }
        account.tell(
            &mut *self.sink,
            "xplane",
            "steps by module",
            "device_range: runs of the module with most of the time",
        );
    }

    fn step(&mut self, track: TrackId, row: &Row<'_>, number: &str) {
        let name = self.sink.intern(&format!("XLA step {number}"));
        let (start, dur) = (row.start, row.end.saturating_sub(row.start));
        self.first = Some(self.first.map_or(start, |first| first.min(start)));
        let category = Category::DeviceRange;
        self.sink.slice(Slice { track, start, dur, name, category, correlation: None, detail: None });
    }
}
