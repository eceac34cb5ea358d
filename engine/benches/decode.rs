//! How fast this engine reads prompts and decodes, by type of weights: `cargo bench -p stratoscope-engine --bench decode`.
//!
//! Prints one line per round and type, so that a script can run a peer between the rounds. Arguments: types, then
//! `prompt=N`, `steps=N`, `rounds=N`, `threads=N`, `batch=N`, `mode=eager|graph`, `level=fused`, `model=PRESET`, `log=on|off|both`, and
//! `isa=all` for every instruction set of this processor in turn; `log=ops` says of the last round what each kind of operator took.

use std::{collections::BTreeMap, time::Instant};

use engine::{
    Dtype, Synthetic,
    cpu::Isa,
    preset,
    program::Level,
    record::{Kind, Log},
    run::{Engine, Mode, RunOptions},
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut types, mut rounds, mut model, mut logs) = (Vec::new(), 3, "qwen2.5-0.5b".to_owned(), vec![false]);
    let mut isas = Isa::available().into_iter().take(1).collect::<Vec<_>>();
    let mut told = false;
    let mut options = RunOptions { prompt: 512, steps: 32, mode: Mode::Graph, ..RunOptions::default() };
    for argument in std::env::args().skip(1).filter(|argument| argument != "--bench") {
        match argument.split_once('=') {
            Some(("prompt", n)) => options.prompt = n.parse()?,
            Some(("steps", n)) => options.steps = n.parse()?,
            Some(("rounds", n)) => rounds = n.parse()?,
            Some(("threads", n)) => options.threads = n.parse()?,
            Some(("batch", n)) => options.batch = n.parse()?,
            Some(("mode", "eager")) => options.mode = Mode::Eager,
            Some(("mode", "graph")) => options.mode = Mode::Graph,
            Some(("model", name)) => model = name.to_owned(),
            Some(("level", "fused")) => options.level = Level::Fused,
            Some(("isa", "all")) => isas = Isa::available(),
            Some(("log", "on")) => logs = vec![true],
            Some(("log", "both")) => logs = vec![false, true],
            Some(("log", "ops")) => (logs, told) = (vec![true], true),
            Some(_) => return Err(format!("unknown argument '{argument}'").into()),
            None => {
                let of_name = |dtype: &Dtype| dtype.name() == argument;
                let all = [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::Q8];
                types.push(all.into_iter().find(of_name).ok_or(format!("unknown type '{argument}'"))?);
            }
        }
    }
    if types.is_empty() {
        types = vec![Dtype::Bf16, Dtype::F32, Dtype::Q8];
    }
    let config = preset(&model).ok_or(format!("unknown model '{model}'"))?;
    for dtype in types {
        let of = |isa: &Isa| {
            let options = RunOptions { dtype, isa: *isa, ..options.clone() };
            Engine::new(config.clone(), &mut Synthetic, options, &mut Log::off())
        };
        let mut engines = isas.iter().map(of).collect::<Result<Vec<_>, _>>()?;
        for round in 0..rounds {
            for (engine, isa) in engines.iter_mut().zip(&isas) {
                for recorded in &logs {
                    let log = once(engine, *recorded, &format!("{} {} round {round}", dtype.name(), isa.name()))?;
                    if told && round + 1 == rounds {
                        tell(engine, &log);
                    }
                }
            }
        }
    }
    Ok(())
}

/// A prompt and its steps, and what they took.
fn once(engine: &mut Engine, recorded: bool, what: &str) -> Result<Log, Box<dyn std::error::Error>> {
    let (prompt, batch, threads) = (engine.options().prompt, engine.options().batch, engine.options().threads);
    let mut log = if recorded { Log::with_capacity(engine.records(), threads) } else { Log::off() };
    let mut spans = Vec::new();
    let began = Instant::now();
    engine.run(&mut log, |step| {
        spans.push(step.span.end - step.span.start);
        true
    })?;
    let total = began.elapsed();
    let prefill = spans.remove(0);
    spans.sort_unstable();
    let sum: i64 = spans.iter().sum();
    let median = spans.get(spans.len() / 2).copied().unwrap_or(0);
    println!(
        "{what} recorded {recorded}: prefill {:.1} tokens/s, decode {:.2} tokens/s (mean), {:.2} tokens/s (median step \
         {:.3} ms), {:.2} s in all",
        (prompt * batch) as f64 * 1e9 / prefill as f64,
        (spans.len() * batch) as f64 * 1e9 / sum as f64,
        batch as f64 * 1e9 / median as f64,
        median as f64 / 1e6,
        total.as_secs_f64(),
    );
    Ok(log)
}

/// Time of each kind of operator on the device: of the prompt, and of a step after it.
fn tell(engine: &Engine, log: &Log) {
    let mut took: BTreeMap<&str, [i64; 2]> = BTreeMap::new();
    let steps = log.records().iter().map(|record| i64::from(record.step)).max().unwrap_or(0).max(1);
    for record in log.records() {
        let (Kind::Op(op) | Kind::ReplayedOp(op)) = record.kind else { continue };
        let later = usize::from(record.step > 0);
        let Some(op) = engine.programs()[later].ops.get(op as usize) else { continue };
        took.entry(op.name.text()).or_default()[later] += record.device.end - record.device.start;
    }
    for (name, [prompt, later]) in took {
        println!(
            "{name:>20}: prompt {:9.3} ms, step {:7.3} ms",
            prompt as f64 / 1e6,
            later as f64 / 1e6 / steps as f64
        );
    }
}
