//! What the exporter sums up of a rank: `communication.json` beside the text form, `analysis.db` beside the database. Of a rank
//! whose timeline was not kept they are all that is left, with the table of its steps.
//!
//! Starts are µs in floats, which hold them to a quarter of a µs; all other times of collectives are ms.

use std::{fs, io, path::Path};

use serde_json::{Map, Value, json};

use super::{Recorded, device::Collective};
use crate::{
    clock::{EPOCH, micros},
    database,
    inserts::{Cell, Inserts},
    run::WriteError,
};

/// The only step, where nothing marked any.
const STEP: &str = "step";
/// Ways of transport, of which the simulated devices have the first two.
const TRANSPORTS: [&str; 5] = ["HCCS", "SDMA", "RDMA", "PCIE", "SIO"];

/// Times of a collective: elapsed, transferred, waited, waited before the first transfer, and all else (ns).
fn times(collective: &Collective) -> [i64; 5] {
    let Collective { start, end, wait, .. } = *collective;
    [end - start, end - start - wait, wait, wait, 0]
}

/// Whether two ranks do it.
fn kind(collective: &Collective) -> &'static str {
    if collective.is_pair() { "p2p" } else { "collective" }
}

#[allow(clippy::cast_precision_loss)]
fn millis(ns: i64) -> f64 {
    ns as f64 / 1e6
}

/// µs of the wall clock.
#[allow(clippy::cast_precision_loss)]
fn start(ns: i64) -> f64 {
    (EPOCH + ns) as f64 / 1e3
}

/// What the exporter writes of one collective or of several, whose start it does not tell.
fn told(of: &[&Collective]) -> Value {
    let mut sums = [0; 5];
    for collective in of {
        for (sum, time) in sums.iter_mut().zip(times(collective)) {
            *sum += time;
        }
    }
    let [elapse, transit, wait, synchronization, idle] = sums.map(millis);
    let ratio = |part: f64| if part + transit > 0.0 { part / (part + transit) } else { 0.0 };
    let mut info = json!({
        "Elapse Time(ms)": elapse, "Transit Time(ms)": transit, "Wait Time(ms)": wait,
        "Synchronization Time(ms)": synchronization, "Idle Time(ms)": idle,
        "Wait Time Ratio": ratio(wait), "Synchronization Time Ratio": ratio(synchronization),
    });
    if let [one] = of {
        info["Start Timestamp(us)"] = json!(start(one.start));
    }
    #[allow(clippy::cast_precision_loss)]
    let megabytes = of.iter().map(|one| 2 * one.count).sum::<i64>() as f64 / 1e6;
    let band = |(nr, name): (usize, &&str)| {
        let (size, time) = if nr < 2 { (megabytes, transit) } else { (0.0, 0.0) };
        let rate = if time > 0.0 { size / time } else { 0.0 };
        let told = json!({
            "Transit Size(MB)": size, "Transit Time(ms)": time, "Bandwidth(GB/s)": rate, "Large Packet Ratio": 0,
            "Size Distribution": {},
        });
        ((*name).to_owned(), told)
    };
    let bands: Map<String, Value> = TRANSPORTS.iter().enumerate().map(band).collect();
    json!({"Communication Time Info": info, "Communication Bandwidth Info": bands})
}

impl Recorded {
    /// Writes `communication.json`.
    pub(super) fn communication(&self, output: &Path) -> io::Result<()> {
        let of = |kind_of: &str| {
            let of: Vec<&Collective> = self.device.collectives.iter().filter(|one| kind(one) == kind_of).collect();
            let mut told_of: Map<String, Value> =
                of.iter().map(|one| (format!("{}@{}", one.name, one.group.number), told(&[one]))).collect();
            if !of.is_empty() {
                told_of.insert("Total Op Info".to_owned(), told(&of));
            }
            told_of
        };
        let text = serde_json::to_string(&json!({STEP: {"p2p": of("p2p"), "collective": of("collective")}}))?;
        fs::write(output.join("communication.json"), text)
    }

    /// Writes `analysis.db`: the sums of steps, and where they were recorded the times of collectives.
    pub(super) fn analysis(&self, output: &Path) -> Result<(), WriteError> {
        let mut rows = Inserts::default();
        let [computing, exposed, overlapped, communication, free, stage, bubble, rest, preparing] =
            self.step_parts().map(|ns| Cell::Text(micros(ns)));
        let device = Cell::Int(Some(self.run.device()));
        rows.row(
            "INSERT INTO StepTraceTime VALUES (?, '', ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [device, computing, exposed, overlapped, communication, free, stage, bubble, rest, preparing],
        );
        for collective in self.device.collectives.iter().filter(|_| self.is_detailed()) {
            let [elapse, transit, wait, synchronization, idle] =
                times(collective).map(|ns| Cell::Text(millis(ns).to_string()));
            let group = collective.group.number.to_string();
            rows.row(
                "INSERT INTO CommAnalyzerTime VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    collective.name.as_str().into(),
                    group.into(),
                    start(collective.start).to_string().into(),
                    elapse,
                    transit,
                    wait,
                    synchronization,
                    idle,
                    STEP.into(),
                    kind(collective).into(),
                ],
            );
        }
        database::create(&output.join("analysis.db"), async |db| {
            sqlx::raw_sql(SCHEMA).execute(&mut *db).await?;
            rows.write(db, "").await?;
            database::drop_empty(db, &["CommAnalyzerTime"]).await
        })
    }
}

const SCHEMA: &str = "
CREATE TABLE StepTraceTime (deviceId INTEGER, step TEXT, computing NUMERIC, communication_not_overlapped NUMERIC, overlapped NUMERIC, communication NUMERIC, free NUMERIC, stage NUMERIC, bubble NUMERIC, communication_not_overlapped_and_exclude_receive NUMERIC, preparing NUMERIC);
CREATE TABLE CommAnalyzerTime (hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC, elapse_time NUMERIC, transit_time NUMERIC, wait_time NUMERIC, synchronization_time NUMERIC, idle_time NUMERIC, step TEXT, type TEXT);
";
