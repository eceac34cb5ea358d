//! Reference checkpoints with what Hugging Face `transformers` gave for them in single precision, for every backend.

use std::path::PathBuf;

use engine::Config;

/// Greatest difference of a logit or hidden value: decoding with a cache differs from a whole pass by 2e-6 in
/// `transformers` itself, so this is room for another order of additions.
pub const TOLERANCE: f32 = 1e-4;
const MODELS: [&str; 3] = ["tiny-llama", "tiny-qwen2", "tiny-qwen3"];

/// A checkpoint and what `transformers` gave.
pub struct Golden {
    pub config: Config,
    pub directory: PathBuf,
    /// Prompt.
    pub ids: Vec<u32>,
    /// Prompt and what follows it.
    pub tokens: Vec<u32>,
}

impl Golden {
    /// Every checkpoint; none where nobody says where they are.
    pub fn all() -> Vec<Self> {
        let Some(root) = std::env::var_os("STRATO_REFERENCE") else {
            eprintln!("skipped: STRATO_REFERENCE names no directory with reference checkpoints");
            return Vec::new();
        };
        let open = |model| {
            let directory = PathBuf::from(&root).join(model);
            let config = Config::read(&directory.join("config.json")).unwrap();
            let mut golden = Self { config, directory, ids: Vec::new(), tokens: Vec::new() };
            golden.ids = golden.integers("ids");
            golden.tokens = golden.integers("gen");
            golden
        };
        MODELS.into_iter().map(open).collect()
    }

    fn integers(&self, name: &str) -> Vec<u32> {
        let mut file = npyz::npz::NpzArchive::open(self.directory.join("golden.npz")).unwrap();
        let values: Vec<i64> = file.by_name(name).unwrap().unwrap().into_vec().unwrap();
        values.into_iter().map(|value| value as u32).collect()
    }

    /// An array of numbers.
    pub fn floats(&self, name: &str) -> Vec<f32> {
        let mut file = npyz::npz::NpzArchive::open(self.directory.join("golden.npz")).unwrap();
        file.by_name(name).unwrap().unwrap().into_vec().unwrap()
    }
}

/// Greatest distance of two numbers in one place.
pub fn greatest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}
