import assert from 'node:assert/strict';
import { keyJson } from '../../src/cli/views/key-view.ts';
import { auditValuesOf } from '../../src/keys/audit/audit-entry.ts';
import { identityFields, type StoredKey, type ValuesOf, valuesOf } from '../../src/keys/key/index.ts';
import { computeChecksum, readStoredKey, rowOf } from '../../src/store/rows.ts';
import { KEY_COLUMNS } from '../../src/store/tables.ts';

/** A value for each identity that a key can have. */
const IDENTITIES = Object.fromEntries(
  Object.entries(identityFields).map(([name, { parts }]) => [
    name,
    Object.fromEntries(Object.keys(parts).map((part) => [part, `Its ${part}`])),
  ]),
) as unknown as ValuesOf<typeof identityFields>;

/** A key with all fields. */
const FULL: Required<Omit<StoredKey, 'damaged'>> = {
  id: '018f0000-0000-7000-8000-000000000001',
  name: 'CI',
  description: 'Deploys',
  owner: 'Ada',
  tags: ['env=prod'],
  metadata: { plan: 'pro' },
  roles: ['GUEST'],
  permissions: ['DOCKER:READ_ANY'],
  limits: ['100/m'],
  allowFrom: ['10.0.0.0/8'],
  audience: 'https://example.org/mcp',
  publicId: 'abcdefghijkl',
  createdAt: 1,
  createdBy: '018f0000-0000-7000-8000-000000000002',
  expiresAt: 2,
  disabledAt: 3,
  managed: true,
  ...IDENTITIES,
  rotation: { previousPublicId: 'mnopqrstuvwx', startedAt: 4, grace: 5, previousEndsAt: 6 },
  unknownFields: { 999: 'kept' },
  digest: 'digest',
  previousDigest: 'previous',
};

/** The fields of FULL that a view lacks. */
const missingIn = (view: object, ...others: string[]) =>
  Object.keys(FULL).filter((field) => !Object.hasOwn(view, field) && !others.includes(field));

describe('a key with all that a key can have', () => {
  it('is read from its row as it was written', () => {
    assert.deepEqual(readStoredKey(rowOf(FULL)), FULL);
  });

  it('has each column in its checksum', () => {
    const row = rowOf(FULL);
    for (const column of KEY_COLUMNS.filter((name) => name !== 'checksum')) {
      assert.notEqual(row[column], null, column);
      assert.notEqual(computeChecksum({ ...row, [column]: 7 }), row.checksum, column);
    }
  });

  it('has a checksum that no version changes', () => {
    assert.equal(rowOf({ ...FULL, metadata: null, ...valuesOf(identityFields, {}) }).checksum, 'ZZeeIrT83uB');
  });

  it('has all that the audit log and commands show of it', () => {
    const secrets = ['publicId', 'digest', 'previousDigest', 'unknownFields'];
    assert.deepEqual(missingIn(auditValuesOf(FULL), ...secrets, 'id', 'createdAt'), []);
    const json = keyJson({
      apiKey: FULL,
      status: 'ACTIVE',
      disabledByPolicy: false,
      unknownGrants: [],
      rotation: FULL.rotation,
      use: { uses: 0, lastUsedAt: null, previousLastUsedAt: null },
      budgets: [],
    });
    assert.deepEqual(missingIn(json, ...secrets), []);
  });
});
