//! The scripts under `tuning/`: against a made-up machine `check` and `explain` change nothing,
//! `apply` brings what `check` wants, and `undo` puts every file back as it was found.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const KNOBS: [&str; 11] = [
    "clocksource",
    "disk-scheduler",
    "disk-write-cache",
    "frequency-governor",
    "huge-pages",
    "irq-affinity",
    "isolated-cores",
    "memlock",
    "network",
    "nofile",
    "swappiness",
];

/// A machine on which every knob has something to set.
const MACHINE: &[(&str, &str)] = &[
    (
        "proc/swaps",
        "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n",
    ),
    ("proc/sys/vm/swappiness", "60\n"),
    ("proc/sys/net/core/somaxconn", "128\n"),
    ("proc/sys/net/ipv4/tcp_max_syn_backlog", "128\n"),
    ("proc/sys/net/ipv4/tcp_slow_start_after_idle", "1\n"),
    ("proc/sys/fs/nr_open", "4096\n"),
    ("proc/sys/kernel/osrelease", "6.1.0-test\n"),
    (
        "proc/self/limits",
        "Limit Soft Hard Units\n\
         Max open files            1024                 4096                 files\n\
         Max locked memory         8388608              8388608              bytes\n",
    ),
    (
        "proc/interrupts",
        "            CPU0       CPU1\n\
          28:          0          0 PCI-MSIX-0000:00:03.0   0-edge      virtio2-config\n\
          29:          1          0 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n\
          30:          1          0 PCI-MSIX-0000:00:03.0   2-edge      virtio2-output.0\n\
          31:          1          0 PCI-MSIX-0000:00:03.0   3-edge      virtio2-input.1\n\
          32:          1          0 PCI-MSIX-0000:00:03.0   4-edge      virtio2-output.1\n",
    ),
    ("proc/irq/28/smp_affinity_list", "0-7\n"),
    ("proc/irq/29/smp_affinity_list", "0-7\n"),
    ("proc/irq/30/smp_affinity_list", "0-7\n"),
    ("proc/irq/31/smp_affinity_list", "0-7\n"),
    ("proc/irq/32/smp_affinity_list", "0-7\n"),
    ("sys/class/net/eth0/device/msi_irqs/28", "msix\n"),
    ("sys/class/net/eth0/device/msi_irqs/29", "msix\n"),
    ("sys/class/net/eth0/device/msi_irqs/30", "msix\n"),
    ("sys/class/net/eth0/device/msi_irqs/31", "msix\n"),
    ("sys/class/net/eth0/device/msi_irqs/32", "msix\n"),
    ("sys/devices/system/cpu/online", "0-7\n"),
    ("sys/devices/system/cpu/isolated", "0\n"),
    (
        "sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
        "0,4\n",
    ),
    (
        "sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
        "powersave\n",
    ),
    (
        "sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors",
        "performance powersave\n",
    ),
    (
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "hpet\n",
    ),
    (
        "sys/devices/system/clocksource/clocksource0/available_clocksource",
        "tsc hpet acpi_pm\n",
    ),
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "[always] madvise never\n",
    ),
    ("sys/block/loop0/queue/scheduler", "none [mq-deadline]\n"),
    ("sys/block/loop0/queue/rotational", "0\n"),
    ("sys/block/nvme0n1/device/model", "a disk\n"),
    (
        "sys/block/nvme0n1/queue/scheduler",
        "none [mq-deadline] kyber\n",
    ),
    ("sys/block/nvme0n1/queue/rotational", "0\n"),
    ("sys/block/nvme0n1/queue/write_cache", "write back\n"),
    (
        "sys/block/sda/device/scsi_disk/0:0:0:0/cache_type",
        "write back\n",
    ),
    ("sys/block/sda/queue/scheduler", "[mq-deadline] none\n"),
    ("sys/block/sda/queue/rotational", "1\n"),
    ("sys/block/sda/queue/write_cache", "write through\n"),
    (
        "etc/sysctl.d/90-coreline-network.conf",
        "# an operator's own\n",
    ),
    ("var/lib/other", ""),
];

/// What `apply` must have changed, by knob.
const APPLIED: &[(&str, &str, &str)] = &[
    (
        "clocksource",
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "tsc",
    ),
    (
        "disk-scheduler",
        "sys/block/nvme0n1/queue/scheduler",
        "none",
    ),
    (
        "disk-write-cache",
        "sys/block/sda/queue/write_cache",
        "write back",
    ),
    (
        "frequency-governor",
        "sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
        "performance",
    ),
    (
        "huge-pages",
        "sys/kernel/mm/transparent_hugepage/enabled",
        "madvise",
    ),
    // CPU 0 is isolated; both sides of a queue go to the same.
    ("irq-affinity", "proc/irq/29/smp_affinity_list", "1"),
    ("irq-affinity", "proc/irq/30/smp_affinity_list", "1"),
    ("irq-affinity", "proc/irq/31/smp_affinity_list", "2"),
    ("irq-affinity", "proc/irq/28/smp_affinity_list", "0-7"),
    (
        "isolated-cores",
        "etc/systemd/system/system.slice.d/50-coreline-isolated-cores.conf",
        "[Slice]\nAllowedCPUs=0,4",
    ),
    (
        "memlock",
        "etc/security/limits.d/90-coreline-memlock.conf",
        "coreline soft memlock 65536\ncoreline hard memlock 65536",
    ),
    ("network", "proc/sys/net/core/somaxconn", "4096"),
    (
        "network",
        "proc/sys/net/ipv4/tcp_slow_start_after_idle",
        "0",
    ),
    (
        "network",
        "etc/sysctl.d/90-coreline-network.conf",
        "net.core.somaxconn = 4096\nnet.ipv4.tcp_max_syn_backlog = 4096\n\
         net.ipv4.tcp_slow_start_after_idle = 0",
    ),
    ("nofile", "proc/sys/fs/nr_open", "1048576"),
    (
        "nofile",
        "etc/security/limits.d/90-coreline-nofile.conf",
        "coreline soft nofile 1048576\ncoreline hard nofile 1048576",
    ),
    ("swappiness", "proc/sys/vm/swappiness", "1"),
    (
        "disk-scheduler",
        "etc/tmpfiles.d/coreline-disk-scheduler.conf",
        "w /sys/block/nvme0n1/queue/scheduler - - - - none",
    ),
];

fn tuning() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tuning")
}

struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        for (path, text) in MACHINE {
            machine.write(path, text);
        }
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    fn value(&self, path: &str) -> String {
        value(&fs::read_to_string(self.path(path)).unwrap())
    }

    fn run(&self, knob: &str, verb: &str) -> Output {
        Command::new(tuning().join(knob))
            .arg(verb)
            .env("TUNING_ROOT", self.0.path())
            .env("BACKEND", "glommio")
            .env_remove("DISKS")
            .output()
            .unwrap()
    }

    /// Every file and folder, choices by what is chosen.
    fn snapshot(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        collect(self.0.path(), &mut found);
        found
    }
}

/// A file's value; of `always [madvise] never` what is in brackets.
fn value(text: &str) -> String {
    match text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
    {
        Some((chosen, rest)) if !rest.contains('=') => chosen.to_owned(),
        _ => text.trim_end().to_owned(),
    }
}

fn collect(folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.insert(path.clone(), "a folder".to_owned());
            collect(&path, found);
        } else {
            let text = fs::read_to_string(&path).unwrap();
            found.insert(path, value(&text));
        }
    }
}

fn text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8(both).unwrap()
}

#[test]
fn the_list_is_that_of_the_folder() {
    let mut found = Vec::new();
    for entry in fs::read_dir(tuning()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let metadata = entry.metadata().unwrap();
        if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 && name != "check" {
            found.push(name);
        }
    }
    found.sort();
    assert_eq!(found, KNOBS);
}

#[test]
fn check_and_explain_change_nothing() {
    let machine = Machine::new();
    let before = machine.snapshot();
    for knob in KNOBS {
        let explained = machine.run(knob, "explain");
        assert!(explained.status.success(), "{knob}");
        assert!(
            text(&explained).contains("\nSource: "),
            "{knob} names no source"
        );
        let checked = machine.run(knob, "check");
        assert_eq!(checked.status.code(), Some(1), "{}", text(&checked));
        assert!(text(&checked).contains("differs"), "{knob}");
        let unknown = machine.run(knob, "aply");
        assert_eq!(unknown.status.code(), Some(2), "{knob}");
    }
    assert_eq!(machine.snapshot(), before);
}

#[test]
fn apply_brings_what_check_wants_and_undo_what_was_there() {
    let machine = Machine::new();
    let before = machine.snapshot();
    for knob in KNOBS {
        let applied = machine.run(knob, "apply");
        assert!(applied.status.success(), "{}", text(&applied));
        let checked = machine.run(knob, "check");
        assert!(checked.status.success(), "{}", text(&checked));
    }
    for (knob, path, wanted) in APPLIED {
        assert_eq!(machine.value(path), *wanted, "{knob}: {path}");
    }
    assert_eq!(
        machine.value("sys/block/sda/queue/scheduler"),
        "mq-deadline",
        "it rotates"
    );
    assert_eq!(
        machine.value("sys/block/loop0/queue/scheduler"),
        "mq-deadline",
        "no disk"
    );
    for knob in KNOBS {
        // Again, with nothing left to do: what was found first stays noted.
        assert!(machine.run(knob, "apply").status.success());
        let undone = machine.run(knob, "undo");
        assert!(undone.status.success(), "{}", text(&undone));
    }
    assert_eq!(machine.snapshot(), before);
}

#[test]
fn undo_needs_what_apply_noted() {
    let machine = Machine::new();
    let before = machine.snapshot();
    for knob in KNOBS {
        let refused = machine.run(knob, "undo");
        assert_eq!(refused.status.code(), Some(2), "{knob}");
        assert!(
            text(&refused).contains("nothing to undo"),
            "{}",
            text(&refused)
        );
    }
    assert_eq!(machine.snapshot(), before);
}

/// A second `apply` after somebody else's change notes what is new, and forgets nothing.
#[test]
fn undo_goes_back_to_what_the_first_apply_found() {
    let machine = Machine::new();
    let before = machine.snapshot();
    machine.write("proc/sys/net/core/somaxconn", "8192\n");
    assert!(machine.run("network", "apply").status.success());
    assert_eq!(
        machine.value("proc/sys/net/core/somaxconn"),
        "8192",
        "more is enough"
    );
    machine.write("proc/sys/net/core/somaxconn", "128\n");
    assert!(machine.run("network", "apply").status.success());
    assert_eq!(machine.value("proc/sys/net/core/somaxconn"), "4096");
    assert!(machine.run("network", "undo").status.success());
    assert_eq!(machine.snapshot(), before);
}

/// What is not taken is told, by the exit code too, and the rest is applied.
#[test]
fn a_value_that_the_kernel_does_not_take_is_told() {
    let machine = Machine::new();
    let path = machine.path("proc/sys/net/core/somaxconn");
    fs::remove_file(&path).unwrap();
    symlink("/dev/null", &path).unwrap();
    let applied = machine.run("network", "apply");
    assert_eq!(applied.status.code(), Some(1), "{}", text(&applied));
    assert!(
        text(&applied).contains("does not take 4096"),
        "{}",
        text(&applied)
    );
    assert_eq!(
        machine.value("proc/sys/net/ipv4/tcp_slow_start_after_idle"),
        "0"
    );
    assert!(machine.run("network", "undo").status.success());
    assert_eq!(
        machine.value("proc/sys/net/ipv4/tcp_slow_start_after_idle"),
        "1"
    );
}

#[test]
fn the_table_has_every_knob_of_this_machine() {
    let output = Command::new(tuning().join("check")).output().unwrap();
    assert!(
        output.status.code().is_some_and(|code| code <= 1),
        "{}",
        text(&output)
    );
    let table = text(&output);
    for knob in KNOBS {
        let has_row = |line: &str| line.split_whitespace().next() == Some(knob);
        assert!(table.lines().any(has_row), "{knob} is missing in\n{table}");
    }
}

/// systemd reads the unit without a word, and finds it hardened.
#[test]
fn the_unit_is_one_and_is_hardened() {
    let unit = fs::read_to_string(tuning().join("systemd/coreline.service")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().join("coreline.service");
    let binary = env!("CARGO_BIN_EXE_coreline");
    fs::write(&here, unit.replace("/usr/bin/coreline", binary)).unwrap();
    let run = |arguments: &[&str]| {
        let command = Command::new("systemd-analyze")
            .args(arguments)
            .arg(&here)
            .output();
        command.ok()
    };
    let Some(verified) = run(&["verify", "--man=no"]) else {
        eprintln!("skipped: there is no systemd-analyze here");
        return;
    };
    assert!(verified.status.success(), "{}", text(&verified));
    assert_eq!(text(&verified), "");
    // Exposure in tenths: "OK" ends at 4.9, most units stand at 9.6.
    let judged = run(&["security", "--offline=true", "--threshold=20", "--no-pager"]).unwrap();
    assert!(judged.status.success(), "{}", text(&judged));
}
