//! A run as a plan asks for it: its controls become options of the engine, and what the engine or this machine cannot have
//! as they say is refused before anything runs.

use std::path::{Path, PathBuf};

use collectors::{engine_run, host::Host};
use model::{Reading, manifest::FIELDS};

use crate::cli::{
    backend,
    decode::DecodeArgs,
    exit::{Missing, Usage},
    plan_file, terminal_text,
};
use diagnosis::compare::{
    contract::rule::{Status, status},
    plan::Asked,
};

/// What a plan asks of this machine.
pub(super) struct Planned {
    /// The run.
    pub what: DecodeArgs,
    /// The plan.
    pub asked: Asked,
    /// Launches.
    pub launches: u16,
    /// The device of this machine that the plan names.
    device: String,
}

impl Planned {
    /// Reads a plan; `what` has the options of which no plan speaks.
    ///
    /// # Errors
    /// A plan that leaves controls open or asks for what the engine cannot do, and a machine that is none of its devices.
    pub fn read(file: &Path, mut what: DecodeArgs) -> anyhow::Result<Self> {
        let asked = plan_file::read(file)?;
        let name = file.display();
        if !asked.open.is_empty() {
            return Err(Usage(format!(
                "'{name}' leaves open {}; move each to [controls] with its value",
                asked.open.join(", ")
            ))
            .into());
        }
        let launches = u16::try_from(asked.launches)
            .ok()
            .filter(|launches| *launches > 0)
            .ok_or_else(|| Usage(format!("'{name}' asks for {} launches; write 1 to {}", asked.launches, u16::MAX)))?;
        for (key, value) in &asked.controls {
            what.control(key, value).map_err(|why| Usage(format!("'{name}' asks for {key} = '{value}': {why}")))?;
        }
        let options = what.options()?;
        let device = match backend::device_name(&options.target).unwrap_or_else(|| Host::read().cpu) {
            Reading::Value(device) => device,
            Reading::Unavailable(why) => {
                return Err(Missing(format!("cannot tell which device this is: {why}; run the plan elsewhere")).into());
            }
        };
        if !asked.devices.contains(&device) {
            let devices = asked.devices.join("' and '");
            return Err(Missing(format!(
                "'{name}' is for '{devices}', and this is '{device}'; run it there, or choose --backend"
            ))
            .into());
        }
        let planned = engine_run::asked(&what.source()?.0, &options, what.tp.max(1), what.identity());
        for field in FIELDS {
            let (Some(wanted), Some((_, own))) =
                (asked.controls.get(field.key), planned.iter().find(|(key, _)| *key == field.key))
            else {
                continue;
            };
            if status(field, Some(wanted), Some(own)) == Status::Different {
                return Err(Usage(format!(
                    "'{name}' asks for {} = '{wanted}', which the engine cannot do: it would have '{own}'; change the \
                     plan, or run this side with what can do it",
                    field.key
                ))
                .into());
            }
        }
        Ok(Self { what, asked, launches, device })
    }

    /// Whether the plan says how far the numbers may be from their reference.
    pub fn asks_numerics(&self) -> bool {
        self.asked.controls.contains_key("precision.deviation")
    }

    /// The capture that is written where none is named: that of the plan and the device, here.
    pub fn output(&self, file: &Path) -> PathBuf {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' };
        let words: String = self.device.chars().map(plain).collect();
        let words: Vec<&str> = words.split_whitespace().collect();
        PathBuf::from(format!("{stem}.{}.strato", words.join("-")))
    }
}

/// What to do with the captures of a plan.
pub(super) fn next_step(file: &Path, captures: &[PathBuf]) -> String {
    let names: Vec<String> = captures.iter().map(|path| path.display().to_string()).collect();
    let line = format!("check   strato plan check {} {}", file.display(), names.join(" "));
    terminal_text::plain(&line).into_owned()
}
