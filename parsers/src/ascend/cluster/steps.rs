//! `cluster_step_trace_time.csv`: a row for each step of each rank, and one for each stage of the pipeline with the largest
//! part of any of its ranks. `step_trace_time.csv`, of one rank: a row for each step.

use std::path::Path;

use model::{Ns, StepPart, TraceSink};

use super::gathered::Gathered;
use crate::{
    Progress, ReadError,
    csv_table::{self, Row, Table},
    lanes::Account,
};

/// Columns that only this table has together.
const MARKS: [&str; 5] = ["step", "type", "index", "computing", "free"];

/// Columns that the table of one rank has together.
const OF_ONE: [&str; 4] = ["step", "computing", "communication(not overlapped)", "free"];

/// Parts of a step, by the column of the table and that of the database. Both are µs; the parts are defined in torch_npu's
/// documentation of `step_trace_time.csv`.
pub(in crate::ascend) const PARTS: [(StepPart, &str, &str); 9] = [
    (StepPart::Computing, "computing", "computing"),
    (StepPart::ExposedCommunication, "communication(not overlapped)", "communication_not_overlapped"),
    (StepPart::Free, "free", "free"),
    (StepPart::Overlapped, "overlapped", "overlapped"),
    (StepPart::Communication, "communication", "communication"),
    (StepPart::Bubble, "bubble", "bubble"),
    (
        StepPart::ExposedWithoutReceive,
        "communication(not overlapped and exclude receive)",
        "communication_not_overlapped_and_exclude_receive",
    ),
    (StepPart::Stage, "stage", "stage"),
    (StepPart::Preparing, "preparing", "preparing"),
];
/// What becomes of the rows of stages.
pub(super) const OF_STAGES: &str = "not kept: the largest part of any rank of the stage; its ranks are kept";

/// Whether these are the columns of such a table.
pub(super) fn is_header(header: &[String]) -> bool {
    csv_table::has_all(header, &MARKS) || csv_table::has_all(header, &OF_ONE)
}

/// Reads the table.
///
/// # Errors
/// [`ReadError`] when the file cannot be read.
pub(super) fn read(
    path: &Path,
    gathered: &mut Gathered,
    sink: &mut dyn TraceSink,
    progress: Progress<'_>,
) -> Result<(), ReadError> {
    let mut table = Table::open_lines(path, is_header)?;
    let columns: Vec<&str> =
        ["step", "type", "index|device_id"].into_iter().chain(PARTS.map(|(_, column, _)| column)).collect();
    let of_one = !csv_table::has_all(table.header(), &MARKS);
    table.select(&columns);
    let (mut ranks, mut stages) = (Account::default(), 0);
    while let Some(row) = table.next(progress)? {
        match row.text(1).as_deref() {
            Some("stage") => {
                stages += 1;
                row.text(2).iter().for_each(|ranks| gathered.stage(ranks));
            }
            _ => {
                ranks.read += 1;
                match take(gathered, row, of_one) {
                    Some(time) => ranks.keep(0, time),
                    None => ranks.incomplete += 1,
                }
            }
        }
    }
    ranks.incomplete += table.cut();
    ranks.tell(sink, "ascend-cluster", "steps of ranks", "sums of the parts of steps");
    if stages > 0 {
        sink.ledger("steps of stages", stages, 0, 0, OF_STAGES);
    }
    table.tell_damage(sink, "ascend-cluster");
    Ok(())
}

/// Takes the row of a rank; the time of its step.
fn take(gathered: &mut Gathered, row: Row<'_>, of_one: bool) -> Option<Ns> {
    // Older versions name no device.
    let rank = row.int(2).or(of_one.then_some(0))?;
    let rank = u32::try_from(rank).ok().filter(|_| of_one || row.text(1).as_deref() == Some("rank"))?;
    let parts = (3..).zip(PARTS).filter_map(|(cell, (part, ..))| Some((part, row.decimal(cell, 3)?)));
    let parts: Vec<(StepPart, Ns)> = parts.filter(|(_, ns)| *ns >= 0).collect();
    // Steps that the program did not mark have no name.
    let step = row.text(0).unwrap_or_default();
    (!parts.is_empty()).then(|| gathered.step(&step, rank, parts))
}
