//! The kernels: OpenCL C 1.2, one file per family of operators, built by the driver for the device, the type of the weights
//! and one of two flavours.

use opencl3::{context::Context, device::cl_device_id, kernel::Kernel, program::Program};

use super::{Flavour, refused};
use crate::{
    Dtype, Error,
    record::{Kind, Log, Span},
};

const PRELUDE: &str = include_str!("kernels/prelude.cl");
/// Every family by its name.
const FAMILIES: [(&str, &str); 6] = [
    ("rows", include_str!("kernels/rows.cl")),
    ("norm", include_str!("kernels/norm.cl")),
    ("linear", include_str!("kernels/linear.cl")),
    ("attention", include_str!("kernels/attention.cl")),
    ("elementwise", include_str!("kernels/elementwise.cl")),
    ("sample", include_str!("kernels/sample.cl")),
];

/// The families as the driver built them.
pub(super) struct Source {
    programs: Vec<Program>,
}

impl Source {
    /// Builds every family; `log` gets what each took.
    pub(super) fn build(
        context: &Context,
        device: cl_device_id,
        dtype: Dtype,
        head_dim: usize,
        flavour: Flavour,
        log: &mut Log,
    ) -> Result<Self, Error> {
        let weight = dtype.name().to_uppercase();
        let options = format!(
            "-cl-std=CL1.2 -cl-mad-enable -D LANES={} -D HEAD_DIM={head_dim} -D WEIGHT_{weight}",
            flavour.lanes()
        );
        let mut programs = Vec::new();
        for (name, text) in FAMILIES {
            let start = log.now();
            let doing = || format!("build the OpenCL kernels of family '{name}'");
            // One text: cl3 0.13 hands several over as if references to texts were pointers to characters.
            let text = format!("{PRELUDE}\n{text}");
            let mut program = Program::create_from_source(context, &text).map_err(|error| refused(&doing(), &error))?;
            if let Err(error) = program.build(&[device], &options) {
                // Compilers write pages; the first lines name what they did not understand.
                let told = program.get_build_log(device).unwrap_or_default();
                let told: Vec<&str> = told.lines().take(12).collect();
                return Err(Error::Device { doing: doing(), what: format!("{error}: {}", told.join(" | ")) });
            }
            log.push(Kind::Compile(name), Span { start, end: log.now() });
            programs.push(program);
        }
        Ok(Self { programs })
    }

    /// A kernel of its own, with arguments of its own.
    pub(super) fn kernel(&self, name: &str) -> Result<Kernel, Error> {
        let program = self.programs.iter().find(|p| p.kernel_names().split(';').any(|kernel| kernel == name));
        let program = program.ok_or_else(|| Error::Device {
            doing: format!("find the OpenCL kernel '{name}'"),
            what: "the driver built no kernel of that name".to_owned(),
        })?;
        Kernel::create(program, name).map_err(|error| refused(&format!("make the OpenCL kernel '{name}'"), &error))
    }
}
