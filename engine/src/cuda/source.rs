//! The kernels: CUDA C without headers, one file per family of operators. Where NVRTC is there and knows the device they are
//! compiled for it; elsewhere the driver compiles the PTX that comes with the program.

#![allow(unsafe_code)]

use std::{collections::BTreeMap, ffi::CString, path::Path, rc::Rc};

use super::{
    compiler::{self, Compiler, Form},
    device::Context,
    platform::{Handle, Why},
    ptx,
    signature::{self, Kind},
};
use crate::{
    Dtype, Error,
    record::{self, Log, Span},
};

const PRELUDE: &str = include_str!("kernels/prelude.cu");
const WEIGHTS: &str = include_str!("kernels/weights.cu");

/// Kernels that are compiled together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    pub name: &'static str,
    text: &'static str,
    /// Whether there is one of them for every type of weights.
    pub is_weighted: bool,
}

/// Every family.
pub(super) const FAMILIES: [Family; 8] = [
    Family { name: "rows", text: include_str!("kernels/rows.cu"), is_weighted: true },
    Family { name: "norm", text: include_str!("kernels/norm.cu"), is_weighted: false },
    Family { name: "linear", text: include_str!("kernels/linear.cu"), is_weighted: true },
    Family { name: "attention", text: include_str!("kernels/attention.cu"), is_weighted: false },
    Family { name: "elementwise", text: include_str!("kernels/elementwise.cu"), is_weighted: false },
    Family {
        name: "synthetic",
        text: concat!(include_str!("kernels/halves.cu"), "\n", include_str!("kernels/synthetic.cu")),
        is_weighted: false,
    },
    Family {
        name: "cast",
        text: concat!(include_str!("kernels/halves.cu"), "\n", include_str!("kernels/cast.cu")),
        is_weighted: false,
    },
    Family { name: "sample", text: include_str!("kernels/sample.cu"), is_weighted: false },
];

impl Family {
    /// All that is compiled.
    pub(super) fn text(&self) -> String {
        let weights = if self.is_weighted { WEIGHTS } else { "" };
        format!("{PRELUDE}\n{weights}\n{}", self.text)
    }

    /// How: for an architecture (`sm_90`, `compute_80`) and a type of weights.
    pub(super) fn options(&self, architecture: &str, dtype: Dtype) -> Vec<String> {
        let mut options = vec![format!("--gpu-architecture={architecture}"), "--std=c++17".to_owned()];
        if self.is_weighted {
            options.push(format!("-DWEIGHT_{}", dtype.name().to_uppercase()));
        }
        options
    }

    /// Its kernels, each with what it takes.
    pub(super) fn signatures(&self, dtype: Dtype) -> BTreeMap<String, Vec<Kind>> {
        signature::of(self.text, dtype)
    }
}

/// Where the code of the device comes from.
#[derive(Clone, Copy)]
pub(super) enum Origin {
    Nvrtc(&'static Compiler),
    Ptx,
}

impl Origin {
    /// What there is for a device; `library` names the compiler in place of the system's.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the named compiler cannot be loaded, or nothing knows the device.
    pub(super) fn choose(context: &Context, library: Option<&Path>) -> Result<Self, Error> {
        let unavailable = |what| Error::Unavailable { backend: "cuda", what };
        let (facts, compiler) = (&context.facts, Compiler::load(library));
        let reason = match (compiler, library) {
            (Ok(compiler), _) if compiler.knows(facts.capability) => return Ok(Self::Nvrtc(compiler)),
            (Ok(compiler), _) => format!("NVRTC {} does not know {}", compiler.title(), facts.architecture()),
            (Err(why), Some(path)) => {
                return Err(unavailable(format!("'{}' is no NVRTC: {why}; {}", path.display(), compiler::REMEDY)));
            }
            (Err(why), None) => why,
        };
        if facts.capability >= ptx::CAPABILITY {
            return Ok(Self::Ptx);
        }
        let (major, minor) = ptx::CAPABILITY;
        Err(unavailable(format!(
            "{} ({}) is older than what the embedded kernels are for (compute capability {major}.{minor}), and there is no \
             compiler for it ({reason}); {}",
            facts.name,
            facts.architecture(),
            compiler::REMEDY
        )))
    }

    /// In words.
    pub(super) fn describe(&self, context: &Context) -> String {
        match self {
            Self::Nvrtc(compiler) => {
                format!("NVRTC {} for {}", compiler.title(), context.facts.architecture())
            }
            Self::Ptx => format!("embedded PTX for compute_{}{}, by the driver", ptx::CAPABILITY.0, ptx::CAPABILITY.1),
        }
    }
}

/// A kernel with what it takes.
pub(super) struct Kernel<'s> {
    pub function: Handle,
    pub takes: &'s [Kind],
}

/// A family as the driver has it.
struct Module {
    handle: Handle,
    signatures: BTreeMap<String, Vec<Kind>>,
}

/// The families as the driver has them.
pub(super) struct Source {
    context: Rc<Context>,
    modules: Vec<Module>,
}

impl Source {
    /// Makes every family ready; `log` gets what each took.
    pub(super) fn build(context: &Rc<Context>, origin: Origin, dtype: Dtype, log: &mut Log) -> Result<Self, Error> {
        let mut own = Self { context: Rc::clone(context), modules: Vec::new() };
        for family in FAMILIES {
            let image = match origin {
                Origin::Nvrtc(compiler) => {
                    let options = family.options(&context.facts.architecture(), dtype);
                    let start = log.now();
                    let made = compiler.compile(family.name, &family.text(), &options, Form::Cubin);
                    log.push(record::Kind::Compile(family.name), Span { start, end: log.now() });
                    made.map_err(|what| Error::Device {
                        doing: format!("compile the kernels '{}'", family.name),
                        what,
                    })?
                }
                Origin::Ptx => ptx::of(&family, dtype).as_bytes().to_vec(),
            };
            let start = log.now();
            let handle = own.load(family.name, image)?;
            own.modules.push(Module { handle, signatures: family.signatures(dtype) });
            log.push(record::Kind::Load(family.name), Span { start, end: log.now() });
        }
        Ok(own)
    }

    fn load(&self, family: &str, mut image: Vec<u8>) -> Result<Handle, Error> {
        // Texts of PTX end with a zero; to machine code one more byte means nothing.
        image.push(0);
        let driver = self.context.driver;
        let mut told = vec![0u8; 4096];
        // SAFETY: the context is entered; an image that a compiler made, with a zero behind it.
        let refused = match unsafe { driver.calls.load_module(&image, &mut told) } {
            Ok(handle) => return Ok(handle),
            Err(refused) => refused,
        };
        let told = String::from_utf8_lossy(&told);
        let told: Vec<&str> = told.trim_end_matches('\0').lines().take(6).collect();
        let remedy = if refused.why == Why::Younger { "; it is older than CUDA 12.1: install a newer one" } else { "" };
        let what = format!("the CUDA driver answers {}{remedy} {}", refused.what, told.join(" | "));
        Err(Error::Device { doing: format!("load the kernels '{family}'"), what: what.trim_end().to_owned() })
    }

    /// A kernel by its name.
    pub(super) fn kernel(&self, name: &str) -> Result<Kernel<'_>, Error> {
        let doing = || format!("find the CUDA kernel '{name}'");
        let none = || Error::Device { doing: doing(), what: "no family of kernels has it".to_owned() };
        let has = |module: &Module| module.signatures.contains_key(name);
        let module = self.modules.iter().find(|module| has(module)).ok_or_else(none)?;
        let takes = module.signatures.get(name).ok_or_else(none)?;
        let text = CString::new(name).map_err(|_| none())?;
        // SAFETY: a module that is loaded as long as this lives.
        let found = unsafe { self.context.driver.calls.function(module.handle, &text) };
        let function = self.context.driver.check(&doing(), found)?;
        Ok(Kernel { function, takes })
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        let _ = self.context.enter();
        for module in &self.modules {
            // SAFETY: loaded by this, and unloaded once, after the queue that ran its kernels was waited for.
            let _ = unsafe { self.context.driver.calls.unload_module(module.handle) };
        }
    }
}
