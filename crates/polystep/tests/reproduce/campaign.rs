//! Campaigns: stages of tables in their order, and NVIDIA's MPS around them.

use super::*;

/// A stage is made by one command, with MPS around it: a service is started before the first run and ended after the last.
#[test]
fn a_campaign_is_made_in_its_order_under_mps() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    sandbox.write("plan.toml", &plan(5));
    let stage = |name: &str, rows: &str| {
        format!("[[stage]]\nname = \"{name}\"\ntables = [\"var1coarsefull\"]\nrows = \"{rows}\"\n")
    };
    sandbox
        .write("campaign.toml", &format!("plans = [\"plan.toml\"]\n{}{}", stage("fine", "2"), stage("coarse", "1,2")));
    sandbox.write(
        "nvidia-cuda-mps-control",
        "#!/bin/sh\necho \"$CUDA_MPS_PIPE_DIRECTORY $1$(test $# = 1 || cat)\" >> service.log\n",
    );
    let control = sandbox.path("nvidia-cuda-mps-control");
    std::fs::set_permissions(&control, std::fs::Permissions::from_mode(0o755)).unwrap();
    let command = |more: &[&str]| {
        let args = [&["reproduce", "--campaign", "campaign.toml", "--threads", "2"], more].concat();
        let mut command = sandbox.command(&args);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("POLYSTEP_MODELS", "none").env("CUDA_MPS_PIPE_DIRECTORY", "nowhere");
        command.env("PATH", format!("{}:{path}", control.parent().unwrap().display()));
        command.output().unwrap()
    };
    let shown = succeeded(command(&["--dry-run"]));
    let (fine, coarse) = ("small_coeff-1-fine-infix", RUN);
    let place = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{text}: {shown}"));
    assert!(
        place("fine: 2 of 2 runs to be made") < place(fine) && place(fine) < place("coarse: 1 of 1 runs"),
        "{shown}"
    );
    assert!(place("coarse: 1 of 1 runs") < place(coarse), "{shown}");
    succeeded(command(&["--mps"]));
    for run in [fine, coarse, ENDPOINT] {
        assert!(sandbox.path(&format!("results/runs/{run}/metrics.json")).exists(), "{run}");
    }
    assert!(sandbox.text("results/var1coarsefull.csv").lines().count() == 3);
    let service = sandbox.text("service.log");
    let (started, ended) = service.trim_end().split_once('\n').unwrap();
    let folder = started.strip_suffix(" -d").unwrap();
    assert_eq!(ended, format!("{folder} quit"), "the same service");
    assert!(Path::new(folder).is_absolute() && !Path::new(folder).exists(), "{folder}");
    // Nothing is left, and nothing is made again.
    assert!(succeeded(command(&["--dry-run"])).contains("fine: 0 of 2 runs to be made"));
    let refused = failed(command(&["--mps", "--device", "cpu"]), 2);
    assert!(refused.contains("--mps shares a GPU"), "{refused}");
}
