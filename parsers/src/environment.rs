//! Environment variables: only those known to matter for speed and to hold no secret are read.

use model::secret;

/// Prefixes of the variables that are kept.
const ALLOWED: &[&str] = &[
    "ASCEND_",
    "CUBLAS_",
    "CUDA_",
    "CUDNN_",
    "FLASHINFER_",
    "GLOO_",
    "HCCL_",
    "HIP_",
    "MKL_",
    "NCCL_",
    "NVIDIA_TF32_",
    "NVIDIA_VISIBLE_DEVICES",
    "NVTE_",
    "OMP_",
    "PYTORCH_",
    "RCCL_",
    "ROCR_",
    "SGLANG_",
    "TORCH_",
    "TRITON_",
    "TRTLLM_",
    "VLLM_",
];

/// Longest value kept, in bytes.
const MAX_VALUE: usize = 200;
/// Most variables kept.
const MAX_VARIABLES: usize = 256;

/// Variables that were kept, and how many were not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Environment {
    kept: std::collections::BTreeMap<String, String>,
    /// Variables that were not kept.
    pub redacted: u64,
}

impl Environment {
    /// Takes one `NAME=value`, the value possibly in double quotes.
    pub fn take(&mut self, line: &str) {
        match allowed(line.trim()) {
            Some((name, value)) if self.kept.len() < MAX_VARIABLES => {
                let value = value.get(..value.floor_char_boundary(MAX_VALUE)).unwrap_or_default();
                self.kept.insert(name.to_owned(), secret::without_homes(value));
            }
            _ => self.redacted += u64::from(line.contains('=')),
        }
    }

    /// Whether no variable was seen.
    #[cfg(feature = "sqlite")]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.redacted == 0
    }

    /// The variables kept, in order of their names; `None` when there are none.
    pub fn text(&self) -> Option<String> {
        let lines: Vec<String> = self.kept.iter().map(|(name, value)| format!("{name}={value}")).collect();
        (!lines.is_empty()).then(|| lines.join(", "))
    }
}

/// Name and value of a line if the variable may be kept.
fn allowed(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let upper = name.to_ascii_uppercase();
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let wanted = ALLOWED.iter().any(|prefix| upper.starts_with(prefix));
    let secret = secret::is_secret_variable(name);
    let value = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
    // `http://user:password@host` is a secret whatever the variable is called.
    let holds_one = secret::kept(value) != secret::without_homes(value);
    (plain && wanted && !secret && !holds_one).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_allow_list_is_kept() {
        let mut environment = Environment::default();
        for line in [
            "NCCL_ALGO=\"Ring\"",
            "CUDA_VISIBLE_DEVICES=0,1",
            "VLLM_API_KEY=sk-hidden",
            "HF_TOKEN=hidden",
            "TORCH_PROXY=http://me:hidden@host",
            "TORCH_DATA_URL=https://host/x?sig=hidden",
            "PATH=/hidden",
            "NCCL_PWD=hidden",
            "CUDA_COOKIE=hidden",
            "TORCH_DB_DSN=hidden",
            "no variable",
        ] {
            environment.take(line);
        }
        assert_eq!(environment.text().as_deref(), Some("CUDA_VISIBLE_DEVICES=0,1, NCCL_ALGO=Ring"));
        assert_eq!(environment.redacted, 8);
    }

    #[test]
    fn homes_are_not_kept() {
        let mut environment = Environment::default();
        environment.take("CUDA_CACHE_PATH=/home/alice/.nv/cache");
        assert_eq!(environment.text().as_deref(), Some("CUDA_CACHE_PATH=~/.nv/cache"));
    }

    #[test]
    fn long_values_are_cut_at_a_character() {
        let mut environment = Environment::default();
        environment.take(&format!("NCCL_X={}", "é".repeat(500)));
        assert_eq!(environment.text().map(|text| text.len()), Some("NCCL_X=".len() + MAX_VALUE));
    }
}
