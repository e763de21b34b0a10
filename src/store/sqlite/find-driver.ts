import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import Bundled from 'better-sqlite3';
import { KeysError, printable } from '../../keys/basics/index.ts';

/** Opens an SQLite database with the driver that this process uses. @throws an error of SQLite */
type Open = (path: string, options?: Bundled.Options) => Bundled.Database;

/** The packages that have one binary each are called so, followed by the driver's name of the platform. */
const PLATFORM_PACKAGES = '@svc-api/sqlite-';
const BUILT_FOR = /^(linux|linuxmusl|darwin|win32)-(x64|arm64)$/;
const CODE = 'DRIVER_UNSUPPORTED';
const require = createRequire(import.meta.url);
let chosen: Open | undefined;

/**
 * The bundled driver, with the binary that is beside it, or else that of the package of this platform. Where none of
 * them runs, the driver's own package, if that is installed.
 * @throws KeysError DRIVER_UNSUPPORTED
 */
export function findDriver(): Open {
  return (chosen ??= firstThatRuns([() => openBundled(), ...platforms().map((name) => () => openOf(name)), installed]));
}

function firstThatRuns(candidates: readonly (() => Open)[]): Open {
  let problem: Error | undefined;
  for (const candidate of candidates) {
    try {
      const open = candidate();
      // It loads its binary with its first database.
      open(':memory:').close();
      return open;
    } catch (error) {
      if (error instanceof KeysError) throw error;
      if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') problem ??= error as Error;
    }
  }
  throw unsupported(problem);
}

/** What the driver calls the platforms that this one may be. Where both are installed, musl's runs on musl alone. */
function platforms(): string[] {
  const { platform, arch } = process;
  return (platform === 'linux' ? ['linuxmusl', 'linux'] : [platform]).map((system) => `${system}-${arch}`);
}

function openBundled(binary: Bundled.Options = {}): Open {
  return (path, options) => new Bundled(path, { ...options, ...binary });
}

/**
 * The bundled driver with the binary of another package, which must be one that this version was built with: somebody
 * else may have published a package of that name where it was installed from.
 */
function openOf(platform: string): Open {
  const name = PLATFORM_PACKAGES + platform;
  const path = require.resolve(name);
  // Few need it, and it takes milliseconds to load.
  const { hash } = process.getBuiltinModule('node:crypto');
  const [sum, known] = [hash('sha256', readFileSync(path)), sumOf(platform)];
  if (sum === known) return openBundled({ nativeBinding: path });
  throw new KeysError(
    CODE,
    `The binary of ${name} is not the one that this svc-api was released with, and was not loaded: the SHA-256 of ` +
      `${printable(path, 300)} is ${sum}, not ${known}. Find out where it is from, and install svc-api again.`,
  );
}

/** The SHA-256 of the binary for a platform, in hexadecimal digits. */
function sumOf(platform: string): string | undefined {
  // Beside the bundle of this file.
  const sums = readFileSync(new URL('./better-sqlite3/SHA256SUMS', import.meta.url), 'utf8');
  return new RegExp(`^(\\w+)  prebuilds/${platform}\\.node$`, 'm').exec(sums)?.[1];
}

function installed(): Open {
  const Driver = require('better-sqlite3') as typeof Bundled;
  return (path, options) => new Driver(path, options);
}

function unsupported(cause: Error | undefined): KeysError {
  const { platform, arch } = process;
  const glibc = glibcVersion();
  const isMusl = platform === 'linux' && glibc === undefined;
  const libc = isMusl ? ' with musl' : glibc === undefined ? '' : ` with glibc ${glibc}`;
  const name = `${platform}${isMusl ? 'musl' : ''}-${arch}`;
  const missing = BUILT_FOR.test(name) ? ` (${PLATFORM_PACKAGES}${name} is not installed)` : '';
  const reason = cause ? ` (${printable(cause.message.split('\n', 1)[0]!, 300)})` : missing;
  return new KeysError(
    CODE,
    `SQLite's driver has no binary that runs on ${platform} ${arch}${libc}${reason}. Install svc-api again on this ` +
      'machine, with its optional packages, or beside it better-sqlite3, compiled for this machine; or keep the keys ' +
      'in PostgreSQL: --database postgres://….',
    { cause },
  );
}

/** Undefined without glibc. */
function glibcVersion(): string | undefined {
  const report = process.report as typeof process.report & { excludeNetwork: boolean };
  // The report would look up the names of all addresses.
  report.excludeNetwork = true;
  const { header } = report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime;
}
