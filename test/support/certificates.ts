import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CertificateFiles } from '../../src/http/certificate.ts';
import { ROOT } from './process.ts';
import { tempFolder } from './temp.ts';

const FOLDER = join(ROOT, 'test/fixtures/tls');

/** A self-signed certificate of "localhost" and its key, in PEM. */
export interface Pair {
  cert: string;
  key: string;
}

export function pairOf(which: 'first' | 'other'): Pair {
  const prefix = which === 'first' ? '' : 'other-';
  const [cert, key] = ['certificate', 'key'].map((name) => readFileSync(join(FOLDER, `${prefix}${name}.pem`), 'utf8'));
  return { cert: cert!, key: key! };
}

/** Writes a pair into files, with a private key that only this user can read, and returns their paths. */
export function writePair(pair: Pair, folder = tempFolder()): CertificateFiles {
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  writeFileSync(files.cert, pair.cert);
  writeFileSync(files.key, pair.key, { mode: 0o600 });
  return files;
}
