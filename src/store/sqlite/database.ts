import { createRequire } from 'node:module';
import Bundled from 'better-sqlite3';
import { isKeysError, KeysError, printable } from '../../keys/basics/index.ts';
import { openNodeDatabase, type PrivateDatabase } from './node-database.ts';

/** The class of the driver that this process uses. */
let chosen: typeof Bundled | undefined;

/**
 * Opens an SQLite database.
 * @throws KeysError DRIVER_UNSUPPORTED; an error of SQLite
 */
export function openDatabase(path: string, options?: Bundled.Options): Bundled.Database {
  return new (driver())(path, options);
}

/**
 * Opens an SQLite database that no other connection has open: a backup, say, or a passing file. Where no driver runs,
 * Node's own SQLite does, so that stores on PostgreSQL need no driver. A file that others use is not opened by it: two
 * copies of SQLite in one process do not respect one another's locks.
 * @param path of a file that exists, `:memory:`, or an empty text for a file without a name
 * @throws KeysError DRIVER_UNSUPPORTED; an error of SQLite, by the driver's codes
 */
export function openPrivateDatabase(path: string): PrivateDatabase {
  const isFile = path !== '' && path !== ':memory:';
  try {
    requireDriver();
  } catch (error) {
    const database = isKeysError(error) ? openNodeDatabase(path) : undefined;
    if (!database) throw error;
    return database;
  }
  return openDatabase(path, { fileMustExist: isFile });
}

/**
 * Makes sure that there is a driver, before anything is created.
 * @throws KeysError DRIVER_UNSUPPORTED
 */
export function requireDriver(): void {
  driver();
}

/** The bundled driver or, where none of its binaries runs on this machine, its own package, if that is installed. */
function driver(): typeof Bundled {
  if (chosen) return chosen;
  const [problem] = problemWith(Bundled);
  if (problem === undefined) return (chosen = Bundled);
  try {
    const installed = createRequire(import.meta.url)('better-sqlite3') as typeof Bundled;
    if (problemWith(installed).length === 0) return (chosen = installed);
  } catch {
    // It is not installed.
  }
  throw unsupported(problem);
}

/** The error with which a driver cannot be used, if any: it loads its binary with its first database. */
function problemWith(candidate: typeof Bundled): unknown[] {
  try {
    new candidate(':memory:').close();
    return [];
  } catch (error) {
    return [error];
  }
}

function unsupported(cause: unknown): KeysError {
  const { code, message } = cause as NodeJS.ErrnoException;
  const reason = code === 'MODULE_NOT_FOUND' ? '' : ` (${printable(message.split('\n', 1)[0]!, 300)})`;
  return new KeysError(
    'DRIVER_UNSUPPORTED',
    `SQLite's driver has no binary that runs on ${systemName()}${reason}. Install better-sqlite3 where svc-api is ` +
      'installed, compiled for this machine, or keep the keys in PostgreSQL: --database postgres://….',
    { cause },
  );
}

/** `linux x64 with glibc 2.28` */
function systemName(): string {
  const { platform, arch } = process;
  const report = process.report as typeof process.report & { excludeNetwork: boolean };
  if (platform !== 'linux') return `${platform} ${arch}`;
  // The report would look up the names of all addresses.
  report.excludeNetwork = true;
  const { header } = report.getReport() as { header: { glibcVersionRuntime?: string } };
  const { glibcVersionRuntime: glibc } = header;
  return `linux ${arch} with ${glibc === undefined ? 'musl' : `glibc ${glibc}`}`;
}
