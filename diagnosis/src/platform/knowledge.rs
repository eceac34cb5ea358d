//! The packs merged into the tables that questions are answered from.

use super::{
    card::SemanticsCard,
    chip::Chip,
    error::PackError,
    host::HostCall,
    inductor::Inductor,
    model_shape::{ModelEntry, ModelShape},
    op::{CanonicalOp, OpMatch},
    pattern::{PatternTable, anchored},
    remedy::Remedy,
    schema::PackFile,
    step::StepPattern,
    vendor::Vendor,
};

/// Everything the packs say, in order of precedence.
#[derive(Debug)]
pub(super) struct Knowledge {
    pub ops: PatternTable<OpMatch>,
    pub inductor: Inductor,
    pub host_calls: PatternTable<HostCall>,
    pub activities: PatternTable<String>,
    pub steps: Vec<StepPattern>,
    pub cards: Vec<SemanticsCard>,
    /// The card of sources that no other card describes.
    pub fallback: SemanticsCard,
    pub chips: Vec<Chip>,
    pub models: Vec<ModelShape>,
    pub remedies: Vec<RuleRemedy>,
    /// Engine and regex of log lines.
    pub logs: Vec<(String, String)>,
    pub vendors: Vec<Vendor>,
    /// Parts of the names of devices, and the vendor of each.
    pub device_vendors: Vec<(String, String)>,
}

/// A remedy with the rules and vendors it is for.
#[derive(Debug)]
pub(super) struct RuleRemedy {
    pub rules: Vec<String>,
    /// Empty for every vendor.
    pub vendors: Vec<String>,
    pub remedy: Remedy,
}

impl Knowledge {
    /// Merges packs; those that come first take precedence.
    pub fn new(packs: Vec<(String, PackFile)>) -> Result<Self, PackError> {
        let mut cards = packs.iter().flat_map(|(_, pack)| &pack.card);
        let fallback = cards.find(|card| card.formats.is_empty()).cloned().ok_or(PackError::NoFallbackCard)?;
        let mut knowledge = Self {
            ops: PatternTable::default(),
            inductor: Inductor::default(),
            host_calls: PatternTable::default(),
            activities: PatternTable::default(),
            steps: Vec::new(),
            cards: Vec::new(),
            fallback,
            chips: Vec::new(),
            models: Vec::new(),
            remedies: Vec::new(),
            logs: Vec::new(),
            vendors: Vec::new(),
            device_vendors: Vec::new(),
        };
        for (name, pack) in packs {
            knowledge.add(&name, pack)?;
        }
        knowledge.ops.finish();
        knowledge.host_calls.finish();
        knowledge.activities.finish();
        knowledge.inductor.finish();
        knowledge.steps.sort_by_key(|step| std::cmp::Reverse(step.specificity));
        Ok(knowledge)
    }

    fn add(&mut self, name: &str, pack: PackFile) -> Result<(), PackError> {
        let wrong = |table: &str, index: usize| {
            let (name, place) = (name.to_owned(), format!("[[{table}]] {}", index + 1));
            move |message: String| PackError::Value { name, place, message }
        };
        for (i, entry) in pack.op.iter().enumerate() {
            let target = op_match(&entry.name, &entry.slots, &pack.id).map_err(wrong("op", i))?;
            self.ops.add(entry, target).map_err(wrong("op", i))?;
        }
        for (i, entry) in pack.inductor.into_iter().enumerate() {
            let op = canonical(&entry.name).map_err(wrong("inductor", i))?;
            self.inductor.add(entry, op, &pack.id);
        }
        for (i, entry) in pack.host_call.iter().enumerate() {
            let kind = HostCall::parse(&entry.name).ok_or_else(|| format!("unknown host call kind `{}`", entry.name));
            self.host_calls.add(entry, kind.map_err(wrong("host_call", i))?).map_err(wrong("host_call", i))?;
        }
        for (i, entry) in pack.host_activity.iter().enumerate() {
            self.activities.add(entry, entry.name.clone()).map_err(wrong("host_activity", i))?;
        }
        for (i, entry) in pack.step.into_iter().enumerate() {
            let regex = anchored(&entry.regex, entry.ignore_case).map_err(wrong("step", i))?;
            let (engine, stage, specificity) = (entry.engine, entry.stage, entry.specificity);
            self.steps.push(StepPattern { regex, engine, stage, specificity });
        }
        self.cards.extend(pack.card.into_iter().filter(|card| !card.formats.is_empty()));
        self.chips.extend(pack.chip);
        for (i, entry) in pack.model.into_iter().enumerate() {
            self.models.push(ModelEntry::shape(entry).map_err(wrong("model", i))?);
        }
        self.vendors.extend(pack.vendor);
        self.logs.extend(pack.log.into_iter().map(|entry| (entry.engine, entry.regex)));
        for entry in pack.device_name {
            self.device_vendors.extend(entry.contains.into_iter().map(|part| (part, entry.vendor.clone())));
        }
        for entry in pack.remedy {
            let remedy = Remedy {
                text_en: entry.en,
                text_zh: entry.zh,
                platform: pack.id.clone(),
                source: entry.source.unwrap_or_else(|| pack.source.clone()),
                date: entry.date.unwrap_or_else(|| pack.date.clone()),
                unless: entry.unless,
                of: entry.of,
                kernels: entry.kernels,
            };
            self.remedies.push(RuleRemedy { rules: entry.rules, vendors: pack.vendors.clone(), remedy });
        }
        Ok(())
    }
}

fn canonical(name: &str) -> Result<CanonicalOp, String> {
    CanonicalOp::parse(name).ok_or_else(|| {
        let known: Vec<&str> = CanonicalOp::ALL.iter().map(|op| op.name()).collect();
        format!("unknown operator `{name}`; the operators are {}", known.join(", "))
    })
}

fn op_match(name: &str, slots: &[String], pack: &str) -> Result<OpMatch, String> {
    let op = canonical(name)?;
    let slots = match slots {
        [] => vec![op],
        slots => slots.iter().map(|slot| canonical(slot)).collect::<Result<_, _>>()?,
    };
    Ok(OpMatch { op, slots, pack: pack.to_owned(), mapped: op != CanonicalOp::Other })
}
