import Driver from 'better-sqlite3';
import { KeysError, printable } from '../../keys/basics/index.ts';

let isLoaded = false;

/**
 * SQLite's driver, whose package contains the binary for this machine.
 * @throws KeysError DRIVER_UNSUPPORTED
 */
export function loadDriver(): typeof Driver {
  if (isLoaded) return Driver;
  try {
    // The binary is loaded with the first database.
    new Driver(':memory:').close();
  } catch (error) {
    throw unsupported(error as Error);
  }
  isLoaded = true;
  return Driver;
}

function unsupported(cause: Error): KeysError {
  const { platform, arch } = process;
  const glibc = glibcVersion();
  const libc = glibc === undefined ? (platform === 'linux' ? ' with musl' : '') : ` with glibc ${glibc}`;
  return new KeysError(
    'DRIVER_UNSUPPORTED',
    `SQLite's driver, better-sqlite3, has no binary that runs on ${platform} ${arch}${libc} ` +
      `(${printable(cause.message.split('\n', 1)[0]!, 300)}). Install svc-api again on this machine, or compile ` +
      'better-sqlite3 where it is installed; or keep the keys in PostgreSQL: --database postgres://….',
    { cause },
  );
}

/** Undefined without glibc. */
function glibcVersion(): string | undefined {
  const report = process.report as typeof process.report & { excludeNetwork: boolean };
  // Otherwise the report looks up the names of all addresses.
  report.excludeNetwork = true;
  const { header } = report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime;
}
