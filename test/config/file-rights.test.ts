import assert from 'node:assert/strict';
import { chmodSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readConfigFile } from '../../src/config/config-file.ts';
import { readCertificate } from '../../src/http/certificate.ts';
import { readPublicFile, readSecretFile } from '../../src/keys/basics/index.ts';
import { readAuditKey } from '../../src/store/audit-log.ts';
import { openStore } from '../../src/store/open.ts';
import { pairOf, writePair } from '../support/certificates.ts';
import { onPlatform } from '../support/platform.ts';
import { migratedStore, tempFolder } from '../support/temp.ts';

const WORDS = { what: 'The file', remedy: 'Name another one.' };

/** A file with all permissions, as Windows reports every file. */
function writable(name: string, text: string): string {
  const path = join(tempFolder(), name);
  writeFileSync(path, text);
  chmodSync(path, 0o666);
  return path;
}

/** Readers of files, which would refuse a mode that lets others write. */
const READERS: Readonly<Record<string, () => Promise<() => unknown>>> = {
  'svc-api.yaml': async () => {
    const path = writable('svc-api.yaml', 'resources: [BACKUP]\n');
    return () => readConfigFile({ path, isNamed: true });
  },
  'a secret of an upstream': async () => {
    const path = writable('secret', 'x');
    return () => readSecretFile(path, WORDS);
  },
  'certificates of an authority': async () => {
    const path = writable('ca.pem', 'x');
    return () => readPublicFile(path, WORDS);
  },
  'the key of the audit log': async () => {
    const path = writable('audit.key', 'a'.repeat(64));
    return () => readAuditKey({ SVC_API_AUDIT_KEY: path });
  },
  'a private key of TLS': async () => {
    const files = writePair(pairOf('first'));
    chmodSync(files.key, 0o666);
    return () => readCertificate(files);
  },
  'a store in a folder that all can write': async () => {
    const database = await migratedStore();
    for (const file of readdirSync(dirname(database))) chmodSync(join(dirname(database), file), 0o666);
    chmodSync(dirname(database), 0o777);
    return async () => (await openStore({ database })).close();
  },
};

describe('a file that all users seem to write', () => {
  for (const [what, prepare] of Object.entries(READERS)) {
    it(`is refused where there are modes, and used on Windows: ${what}`, async () => {
      const read = await prepare();
      await assert.rejects(async () => read(), /can be (written|accessed|read or changed|read by other users)/);
      await onPlatform('win32', read);
    });
  }
});
