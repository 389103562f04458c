//! Where the children of a command compute: `--device`, `--gpus` and `--jobs`. A slot is a place for one child. Each GPU has
//! `--jobs` slots. Slots are filled in turn, so that no GPU has two children while another has none.

use std::str::FromStr;

use clap::Args;
use polystep_engine::cuda::Cuda;

use crate::device::{self, Device};
use crate::failure::{Result, bad_input};

/// The flags.
#[derive(Args, Clone, Debug)]
pub struct SlotArgs {
    #[arg(long, default_value_t = Device::Auto, help = device::HELP)]
    pub device: Device,
    /// The GPUs to use, by their numbers: 0-7 or 0,2,5 [default: all that can be seen; CUDA_VISIBLE_DEVICES hides others]
    #[arg(long, value_name = "LIST")]
    pub gpus: Option<GpuList>,
    /// Number of runs at a time on each GPU, or on the CPU
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub jobs: u8,
}

/// Numbers of GPUs, as in `0-3,6`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GpuList(Vec<u32>);

impl FromStr for GpuList {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<GpuList, String> {
        let wrong = || "it is a list of numbers and ranges, such as 0-7 or 0,2,5".to_owned();
        let mut all = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let [first, last]: [u32; 2] = [first.trim().parse(), last.trim().parse()].map(|n| n.unwrap_or(u32::MAX));
            if first > last || last >= 1024 {
                return Err(wrong());
            }
            all.extend(first..=last);
        }
        let distinct: std::collections::BTreeSet<&u32> = all.iter().collect();
        if distinct.len() < all.len() { Err("it names a GPU twice".into()) } else { Ok(GpuList(all)) }
    }
}

impl std::fmt::Display for GpuList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&numbers.join(","))
    }
}

impl SlotArgs {
    /// The device of every slot.
    pub fn slots(&self) -> Result<Vec<Device>> {
        let visible = match self.device {
            Device::Auto | Device::Cuda(None) => Cuda::count().ok(),
            _ => None,
        };
        self.assigned(visible)
    }

    /// The device of every slot where so many GPUs can be seen.
    fn assigned(&self, visible: Option<u32>) -> Result<Vec<Device>> {
        let devices: Vec<Device> = match (self.device, &self.gpus, visible) {
            (Device::Cpu | Device::Cuda(Some(_)), Some(_), _) => {
                return Err(bad_input(format!("--gpus chooses GPUs, and so does --device {}: give one", self.device)));
            }
            (_, Some(_), None) => {
                return Err(bad_input("--gpus needs a GPU; `polystep doctor` says why none is found"));
            }
            (_, Some(GpuList(gpus)), Some(visible)) => {
                if let Some(missing) = gpus.iter().find(|gpu| **gpu >= visible) {
                    return Err(bad_input(format!("there is no GPU {missing}: {visible} can be seen, from 0")));
                }
                gpus.iter().map(|gpu| Device::Cuda(Some(*gpu))).collect()
            }
            (Device::Auto | Device::Cuda(None), None, Some(visible)) if visible > 1 => {
                (0..visible).map(|gpu| Device::Cuda(Some(gpu))).collect()
            }
            (device, None, _) => vec![device],
        };
        Ok(devices.repeat(self.jobs.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(
        device: &str,
        gpus: Option<&str>,
        jobs: u8,
        visible: Option<u32>,
    ) -> std::result::Result<String, String> {
        let gpus = gpus.map(str::parse).transpose()?;
        let args = SlotArgs { device: device.parse()?, gpus, jobs };
        let slots = args.assigned(visible).map_err(|failure| format!("{failure:?}"))?;
        Ok(slots.iter().map(Device::to_string).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn every_gpu_has_as_many_children_as_jobs() {
        let ok = |text: &str| Ok(text.to_owned());
        assert_eq!(assigned("auto", None, 1, Some(4)), ok("cuda:0 cuda:1 cuda:2 cuda:3"));
        assert_eq!(assigned("cuda", Some("0-1,3"), 2, Some(8)), ok("cuda:0 cuda:1 cuda:3 cuda:0 cuda:1 cuda:3"));
        assert_eq!(assigned("cuda:3", None, 2, None), ok("cuda:3 cuda:3"));
        assert_eq!(assigned("auto", None, 2, Some(1)), ok("auto auto"));
        assert_eq!(assigned("auto", None, 3, None), ok("auto auto auto"));
        assert_eq!(assigned("cpu", None, 2, None), ok("cpu cpu"));
        assert_eq!(assigned("auto", Some("5"), 1, Some(8)), ok("cuda:5"));
    }

    #[test]
    fn wrong_lists_are_refused() {
        let refused = |device, gpus, visible| assigned(device, Some(gpus), 1, visible).unwrap_err();
        assert!(refused("auto", "0-8", Some(8)).contains("there is no GPU 8: 8 can be seen, from 0"));
        assert!(refused("auto", "0", None).contains("--gpus needs a GPU"));
        assert!(refused("cpu", "0", None).contains("--gpus chooses GPUs, and so does --device cpu: give one"));
        assert!(refused("cuda:1", "0", Some(2)).contains("--device cuda:1"));
        assert!(refused("auto", "3-1", Some(8)).contains("such as 0-7"));
        assert!(refused("auto", "", Some(8)).contains("such as 0-7"));
        assert!(refused("auto", "1,0-2", Some(8)).contains("twice"));
        for wrong in ["cuda:", "cuda:x", "gpu", "cuda:-1"] {
            assert!(wrong.parse::<Device>().is_err(), "{wrong}");
        }
    }
}
