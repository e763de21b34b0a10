import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readAuditKey } from '../../src/store/audit-log.ts';
import { NOBODY } from '../support/service-machine.ts';
import { needsRoot } from '../support/skip.ts';
import { tempFolder } from '../support/temp.ts';

describe('the key of the audit log', () => {
  const key = randomBytes(32);
  const read = (content: string | Buffer, mode = 0o600) => {
    const path = join(tempFolder(), 'audit.key');
    writeFileSync(path, content, { mode });
    chmodSync(path, mode);
    return readAuditKey({ SVC_API_AUDIT_KEY: path })?.export();
  };
  const refused = (message: RegExp) => ({ code: 'STORE_AUDIT_KEY', message });

  it('is read raw, in hex and in base64, also with a line feed', () => {
    for (const content of [key, key.toString('hex'), `${key.toString('hex').toUpperCase()}\n`, key.toString('base64')])
      assert.deepEqual(read(content), key);
    assert.deepEqual(read(`${key.toString('base64')}\n`, 0o400), key);
    assert.equal(readAuditKey({}), undefined);
  });

  it('is refused with another length or form, and never shown', () => {
    for (const content of ['', 'password', key.toString('hex').slice(1), Buffer.concat([key, key])])
      assert.throws(() => read(content), refused(/does not hold 32 bytes/));
    assert.throws(
      () => read('hunter2'),
      (error: Error) => !error.message.includes('hunter2'),
    );
  });

  it('is refused if other users can access the file', () => {
    for (const mode of [0o640, 0o604, 0o620, 0o601]) assert.throws(() => read(key, mode), refused(/chmod 600/));
  });

  it('may be readable by the group of a file that belongs to another user, who has no other way to share it', function () {
    needsRoot(this);
    const given = (mode: number) => {
      const path = join(tempFolder(), 'audit.key');
      writeFileSync(path, key);
      chmodSync(path, mode);
      chownSync(path, NOBODY, NOBODY);
      return readAuditKey({ SVC_API_AUDIT_KEY: path })?.export();
    };
    assert.deepEqual(given(0o440), key);
    for (const mode of [0o660, 0o450, 0o444, 0o442, 0o441])
      assert.throws(() => given(mode), refused(/chmod 640 on it, with a group that this user is in/));
  });

  it('is refused from a file of another user than root, who could change it, whatever its group', function () {
    needsRoot(this);
    const folder = tempFolder();
    chmodSync(folder, 0o755);
    const path = join(folder, 'audit.key');
    writeFileSync(path, key);
    chmodSync(path, 0o440);
    const readBy = (user: number, owner: number) => {
      chownSync(path, owner, process.getegid!());
      process.seteuid!(user);
      try {
        return readAuditKey({ SVC_API_AUDIT_KEY: path })?.export();
      } finally {
        process.seteuid!(0);
      }
    };
    assert.deepEqual(readBy(NOBODY, 0), key);
    assert.throws(() => readBy(NOBODY, NOBODY - 1), refused(/belongs to another user/));
  });

  it('is refused if it is missing, a folder, or a pipe without a writer', () => {
    const folder = tempFolder();
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    assert.throws(() => readAuditKey({ SVC_API_AUDIT_KEY: join(folder, 'none') }), refused(/does not exist/));
    for (const path of [folder, pipe])
      assert.throws(() => readAuditKey({ SVC_API_AUDIT_KEY: path }), refused(/is not a file/));
  });
});
