//! What a file says of itself outside its events. Only keys of the allow list are read: user metadata holds tokens and
//! paths, none of which may end up in a capture, and of its environment only variables known to matter for speed.

use std::path::Path;

use crate::environment::Environment;
use crate::json::{Cursor, Fault, Text, Value};

/// Versions, switches and counts that are kept as `kineto.<name>`.
const FURTHER: [(&[u8], &str); 10] = [
    (b"schemaVersion", "kineto.schema_version"),
    (b"record_shapes", "kineto.record_shapes"),
    (b"with_stack", "kineto.with_stack"),
    (b"with_flops", "kineto.with_flops"),
    (b"with_modules", "kineto.with_modules"),
    (b"profile_memory", "kineto.profile_memory"),
    (b"cupti_version", "kineto.cupti_version"),
    (b"roctracer_version", "kineto.roctracer_version"),
    (b"mupti_version", "kineto.mupti_version"),
    (b"trace_id", "kineto.trace_id"),
];

/// One entry of `deviceProperties`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DeviceProperties {
    /// Ordinal.
    pub id: Option<i64>,
    /// Product name; some ROCm builds leave it empty.
    pub name: Option<String>,
    /// Memory, bytes.
    pub memory: Option<i64>,
    /// Multiprocessors, compute units or clusters.
    pub cores: Option<u32>,
}

/// The metadata of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are named after the source's keys
pub(super) struct Facts {
    pub base_ns: Option<i64>,
    pub rank: Option<u32>,
    pub world_size: Option<i64>,
    pub comm_version: Option<String>,
    pub devices: Vec<DeviceProperties>,
    pub toolkit: Option<String>,
    pub driver: Option<String>,
    /// Vendor that the version keys betray.
    pub vendor: Option<&'static str>,
    pub host: Option<String>,
    pub environment: Environment,
    pub simulated: bool,
    /// Manifest key and value.
    pub further: Vec<(&'static str, String)>,
    /// Whether any key was one that Kineto writes.
    pub recognised: bool,
}

impl Facts {
    /// Takes in a top-level key. The last value of a key that stands twice holds.
    pub fn note(&mut self, key: Text<'_>, value: Value<'_>) {
        self.recognised |= self.take(key.raw, value).is_some();
    }

    fn take(&mut self, key: &[u8], value: Value<'_>) -> Option<()> {
        match key {
            b"deviceProperties" => {
                self.devices.clear();
                self.read_devices(value).ok()?;
            }
            b"distributedInfo" => self.read_distributed(value).ok()?,
            // A harness's own key: it does not make the file one of Kineto's.
            b"metadata" => {
                let _ = self.read_environment(value);
                return None;
            }
            b"baseTimeNanoseconds" => self.base_ns = Some(value.int()?),
            b"rank" => self.rank = Some(u32::try_from(value.int()?).ok()?),
            b"cuda_runtime_version" => {
                self.vendor = Some("nvidia");
                self.toolkit = Some(cuda_version("CUDA", value.int()?));
            }
            b"cuda_driver_version" => {
                self.vendor = Some("nvidia");
                self.driver = Some(cuda_version("CUDA driver API", value.int()?));
            }
            b"hip_runtime_version" => {
                self.vendor = Some("amd");
                self.toolkit = Some(hip_version(value.int()?));
            }
            b"hip_driver_version" => {
                self.vendor = Some("amd");
                self.driver = Some(hip_version(value.int()?));
            }
            b"musa_runtime_version" => {
                self.vendor = Some("mthreads");
                self.toolkit = Some(format!("MUSA {}", plain(value)?));
            }
            b"host_name" => self.host = Some(plain(value)?),
            b"stratoSimulated" => self.simulated = matches!(value, Value::Scalar(b"true")),
            b"traceEvents" | b"displayTimeUnit" | b"traceName" => {}
            other => {
                let (_, name) = FURTHER.iter().find(|(key, _)| *key == other)?;
                self.vendor = self.vendor.or(match other {
                    b"cupti_version" => Some("nvidia"),
                    b"roctracer_version" => Some("amd"),
                    b"mupti_version" => Some("mthreads"),
                    _ => None,
                });
                self.further.retain(|(key, _)| key != name);
                self.further.push((name, plain(value)?));
            }
        }
        Some(())
    }

    fn read_devices(&mut self, value: Value<'_>) -> Result<(), Fault> {
        let Value::Container(raw) = value else { return Err(Fault::Broken) };
        let devices = &mut self.devices;
        Cursor::new(raw, 0).array(|cursor| {
            let mut device = DeviceProperties::default();
            cursor.object(|key, cursor| {
                let value = cursor.value()?;
                match key.raw {
                    b"id" => device.id = value.int(),
                    b"name" => device.name = plain(value).filter(|name| !name.is_empty()),
                    b"totalGlobalMem" => device.memory = value.int(),
                    b"totalMem(MiB)" => device.memory = value.int().and_then(|mib| mib.checked_mul(1 << 20)),
                    b"numSms" | b"maxComputeUnits" | b"clusterCount" => {
                        device.cores = value.int().and_then(|cores| u32::try_from(cores).ok());
                    }
                    _ => {}
                }
                Ok(())
            })?;
            devices.push(device);
            Ok(())
        })
    }

    /// `metadata.system.env`, as benchmark harnesses attach it.
    fn read_environment(&mut self, value: Value<'_>) -> Result<(), Fault> {
        let environment = &mut self.environment;
        members(value, b"system", &mut |system| {
            members(system, b"env", &mut |variables| {
                let Value::Container(raw) = variables else { return Err(Fault::Broken) };
                Cursor::new(raw, 0).object(|name, cursor| {
                    if let Some(value) = plain(cursor.value()?) {
                        environment.take(&format!("{}={value}", name.decode().0));
                    }
                    Ok(())
                })
            })
        })
    }

    fn read_distributed(&mut self, value: Value<'_>) -> Result<(), Fault> {
        let Value::Container(raw) = value else { return Err(Fault::Broken) };
        Cursor::new(raw, 0).object(|key, cursor| {
            let value = cursor.value()?;
            match key.raw {
                b"rank" => self.rank = value.int().and_then(|rank| u32::try_from(rank).ok()),
                b"world_size" => self.world_size = value.int().filter(|size| *size > 0),
                b"nccl_version" => self.comm_version = plain(value),
                b"backend" => self.further.extend(plain(value).map(|backend| ("kineto.comm_backend", backend))),
                b"pg_count" => self.further.extend(plain(value).map(|count| ("kineto.process_groups", count))),
                _ => {}
            }
            Ok(())
        })
    }
}

/// Gives the values of an object's member `key` to `take`.
fn members<'a>(
    value: Value<'a>,
    key: &[u8],
    take: &mut dyn FnMut(Value<'a>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let Value::Container(raw) = value else { return Err(Fault::Broken) };
    Cursor::new(raw, 0).object(|name, cursor| {
        let value = cursor.value()?;
        if name.raw == key { take(value) } else { Ok(()) }
    })
}

/// A short string or number as text.
fn plain(value: Value<'_>) -> Option<String> {
    let text = match value {
        Value::Text(text) => text.decode().0.into_owned(),
        Value::Scalar(b"null") | Value::Container(_) => return None,
        Value::Scalar(raw) => String::from_utf8_lossy(raw).into_owned(),
    };
    (text.len() <= 256).then_some(text)
}

/// `12040` is 12.4 (CUDA_VERSION in `cuda.h`: 1000 × major + 10 × minor).
fn cuda_version(what: &str, version: i64) -> String {
    format!("{what} {}.{}", version / 1000, version % 1000 / 10)
}

/// `60443483` is 6.4.43483 (`hip_version.h`: 10⁷ × major + 10⁵ × minor + patch).
fn hip_version(version: i64) -> String {
    format!("HIP {}.{}.{}", version / 10_000_000, version / 100_000 % 100, version % 100_000)
}

/// The rank in names such as `rank-3.json`, `worker_rank0.123.pt.trace.json.gz` and `1712-TP-3.trace.json.gz`.
pub(super) fn rank_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    ["rank", "-tp-"].iter().find_map(|mark| {
        let rest = &name[name.rfind(mark)? + mark.len()..];
        let digits = rest.trim_start_matches(['-', '_']);
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().ok()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn facts(text: &str) -> Facts {
        let mut facts = Facts::default();
        let read = Cursor::new(text.as_bytes(), 0).object(|key, cursor| {
            let value = cursor.value()?;
            facts.note(key, value);
            Ok(())
        });
        read.unwrap();
        facts
    }

    #[test]
    fn versions_devices_and_the_job_are_read() {
        let f = facts(
            r#"{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 85, "numSms": 132}],
            "cuda_runtime_version": 12040, "cuda_driver_version": 12090, "baseTimeNanoseconds": 1751410836000000000,
            "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8, "nccl_version": "2.21.5"}, "stratoSimulated": true}"#,
        );
        assert_eq!((f.toolkit.as_deref(), f.driver.as_deref()), (Some("CUDA 12.4"), Some("CUDA driver API 12.9")));
        assert_eq!((f.rank, f.world_size, f.comm_version.as_deref()), (Some(3), Some(8), Some("2.21.5")));
        assert_eq!((f.base_ns, f.simulated, f.recognised), (Some(1_751_410_836_000_000_000), true, true));
        let device =
            DeviceProperties { id: Some(0), name: Some("NVIDIA H100".into()), memory: Some(85), cores: Some(132) };
        assert_eq!(f.devices, [device]);
        assert_eq!(facts(r#"{"hip_runtime_version": 60443483}"#).toolkit.as_deref(), Some("HIP 6.4.43483"));
    }

    #[test]
    fn unknown_metadata_leaves_no_trace() {
        let f =
            facts(r#"{"env": {"HF_TOKEN": "secret"}, "INFO": ["secret"], "username": "secret", "metadata": "secret"}"#);
        assert_eq!(f, Facts::default());
    }

    #[test]
    fn of_the_environment_only_what_matters_for_speed_is_read() {
        let f = facts(
            r#"{"metadata": {"started_by": "me", "system": {"env": {"HF_TOKEN": "secret", "HIP_FORCE_DEV_KERNARG": "1",
            "PATH": "/secret"}, "pip_packages": []}}}"#,
        );
        assert_eq!(f.environment.text().as_deref(), Some("HIP_FORCE_DEV_KERNARG=1"));
        assert_eq!(f.environment.redacted, 2);
    }

    #[test]
    fn ranks_in_file_names() {
        for (name, rank) in [
            ("rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", Some(34)),
            ("graph_capture_rank_0.1773709742341309550.pt.trace.json.gz", Some(0)),
            ("vllm_rank7.trace.json", Some(7)),
            ("1723456-TP-3-DECODE.trace.json.gz", Some(3)),
            ("rank_not_found.json.gz", None),
            ("trace.json", None),
        ] {
            assert_eq!(rank_of(Path::new(name)), rank, "{name}");
        }
    }
}
