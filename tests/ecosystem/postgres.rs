//! A PostgreSQL server from Debian's packages on its own loopback address.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::of_debian;
use crate::support::{PATIENCE, Running, Sandbox, wait_until};

/// The port in connection Secrets.
const PORT: u16 = 5432;
/// PostgreSQL refuses to run as root, so root starts it as `nobody`.
const NOBODY: u32 = 65534;
/// Requires authentication and encryption.
const ACCESS: &str = "local all all trust\nhostssl all all 127.0.0.0/8 scram-sha-256\n";

pub struct Postgres {
    programs: Programs,
    _server: Running,
    pub address: Ipv4Addr,
    /// The self-signed certificate.
    pub certificate: PathBuf,
}

/// Creates a self-signed certificate for this name, and its key.
fn create_certificate(host: &str, certificate: &Path, key: &Path) {
    run(Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "1",
            "-subj",
            "/CN=postgres",
        ])
        .args(["-addext", &format!("subjectAltName=DNS:{host}")])
        .args([
            "-out".as_ref(),
            certificate.as_os_str(),
            "-keyout".as_ref(),
            key.as_os_str(),
        ]));
}

/// A copy of the programs that the server's user can read.
struct Programs {
    sandbox: Sandbox,
    folder: PathBuf,
}

impl Postgres {
    /// Starts a server with a certificate for this name.
    pub async fn start(host: &str) -> Self {
        let programs = Programs::copy();
        let folder = programs.sandbox.folder().to_owned();
        let (data, certificate, key) = (
            folder.join("data"),
            folder.join("server.crt"),
            folder.join("server.key"),
        );
        create_certificate(host, &certificate, &key);
        programs.hand_over();
        run(programs
            .command("initdb")
            .args([
                "-U",
                "postgres",
                "-E",
                "UTF8",
                "--locale=C",
                "--no-sync",
                "-D",
            ])
            .arg(&data));
        fs::write(data.join("pg_hba.conf"), ACCESS).unwrap();
        let address = free_address();
        let mut server = programs.command("postgres");
        server.arg("-D").arg(&data);
        for (setting, value) in [
            ("listen_addresses", address.to_string().as_ref()),
            ("port", PORT.to_string().as_ref()),
            ("unix_socket_directories", folder.as_os_str()),
            ("fsync", "off".as_ref()),
            ("ssl", "on".as_ref()),
            ("ssl_cert_file", certificate.as_os_str()),
            ("ssl_key_file", key.as_os_str()),
        ] as [(&str, &OsStr); 7]
        {
            server
                .arg("-c")
                .arg(format!("{setting}={}", value.to_str().unwrap()));
        }
        let server = programs
            .sandbox
            .start("postgres", server)
            .unwrap()
            .log_on_panic();
        let postgres = Self {
            programs,
            _server: server,
            address,
            certificate,
        };
        let answers = async || postgres.administrate("SELECT 1", &[]).status.success();
        wait_until("PostgreSQL to answer", PATIENCE, answers)
            .await
            .unwrap();
        postgres
    }

    /// Creates a user and a database that it owns.
    pub fn create(&self, user: &str, password: &str, database: &str) {
        let sql = "CREATE ROLE :\"user\" LOGIN PASSWORD :'password';\nCREATE DATABASE :\"database\" OWNER :\"user\";";
        succeeded(&self.administrate(
            sql,
            &[
                ("user", user),
                ("password", password),
                ("database", database),
            ],
        ));
    }

    pub fn change_password(&self, user: &str, password: &str) {
        let sql = "ALTER ROLE :\"user\" PASSWORD :'password';";
        succeeded(&self.administrate(sql, &[("user", user), ("password", password)]));
    }

    fn administrate(&self, sql: &str, variables: &[(&str, &str)]) -> Output {
        let mut command = self.programs.command("psql");
        command.args([
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "postgres",
            "-d",
            "postgres",
            "-f",
            "-",
            "-h",
        ]);
        command.arg(self.programs.sandbox.folder());
        let mut script = String::new();
        for (name, value) in variables {
            command.env(format!("VALUE_{name}"), value);
            script += &format!("\\getenv {name} VALUE_{name}\n");
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut psql = command.spawn().unwrap();
        psql.stdin
            .take()
            .unwrap()
            .write_all((script + sql).as_bytes())
            .unwrap();
        psql.wait_with_output().unwrap()
    }

    /// The output of psql for a query with this URI. The host name resolves to this server; psql
    /// checks the certificate if the URI demands it.
    pub fn query(&self, uri: &str, sql: &str) -> Result<String, String> {
        let mut psql = self.programs.command("psql");
        psql.args(["-X", "-A", "-t", "-d", uri, "-c", sql]);
        psql.env("PGHOSTADDR", self.address.to_string())
            .env("PGSSLROOTCERT", &self.certificate);
        let output = psql.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim_end().to_owned();
        if output.status.success() {
            Ok(text(output.stdout))
        } else {
            Err(text(output.stderr))
        }
    }
}

impl Programs {
    fn copy() -> Self {
        let sandbox = Sandbox::new("postgres").unwrap();
        let programs = of_debian(&["usr", "lib", "postgresql", "*", "bin", "postgres"]);
        let version = programs.ancestors().nth(2).unwrap();
        let lib = version.ancestors().nth(2).unwrap();
        let shared = lib
            .with_file_name("share")
            .join("postgresql")
            .join(version.file_name().unwrap());
        // The programs find their files by relative paths, so the copy needs the same layout.
        let folder = sandbox
            .folder()
            .join("usr/lib/postgresql")
            .join(version.file_name().unwrap());
        let copy_of_shared = sandbox.folder().join("usr/share/postgresql");
        fs::create_dir_all(folder.parent().unwrap()).unwrap();
        fs::create_dir_all(&copy_of_shared).unwrap();
        copy(version, folder.parent().unwrap());
        copy(&shared, &copy_of_shared);
        if lib != Path::new("/usr/lib") {
            copy_libraries(lib, &sandbox.folder().join("libraries"));
        }
        Self { sandbox, folder }
    }

    /// Makes the server's user the owner of everything.
    fn hand_over(&self) {
        if is_root() {
            run(Command::new("chown")
                .args(["-R", &format!("{NOBODY}:{NOBODY}")])
                .arg(self.sandbox.folder()));
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.folder.join("bin").join(program));
        command
            .current_dir(self.sandbox.folder())
            .env_clear()
            .env("LC_ALL", "C.UTF-8");
        command.env("LD_LIBRARY_PATH", self.sandbox.folder().join("libraries"));
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

fn copy(from: &Path, to: &Path) {
    run(Command::new("cp").arg("-a").arg(from).arg(to));
}

/// Copies the unpacked libraries, all of which are in the folder of the machine's architecture.
fn copy_libraries(lib: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for folder in fs::read_dir(lib)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| is_of_machine(path))
    {
        run(Command::new("cp").arg("-a").arg(folder.join(".")).arg(to));
    }
}

fn is_of_machine(folder: &Path) -> bool {
    folder
        .file_name()
        .and_then(OsStr::to_str)
        .is_some_and(|name| name.ends_with("-linux-gnu"))
}

/// A random loopback address, on which the port is free; all of 127.0.0.0/8 is this machine.
fn free_address() -> Ipv4Addr {
    let some = || {
        Ipv4Addr::new(
            127,
            rand::random_range(1..255),
            rand::random_range(1..255),
            rand::random_range(1..255),
        )
    };
    let free = |address: &Ipv4Addr| TcpListener::bind((*address, PORT)).is_ok();
    let found = std::iter::repeat_with(some).take(100).find(free);
    found.unwrap_or_else(|| panic!("something listens on port {PORT} of all loopback addresses"))
}

fn run(command: &mut Command) {
    succeeded(&command.output().unwrap());
}

fn succeeded(output: &Output) {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
