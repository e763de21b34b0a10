import assert from 'node:assert/strict';
import { createHash, createHmac, createSecretKey } from 'node:crypto';
import { auditChange, type AuditDraft, auditValuesOf } from '../../../src/keys/audit/audit-entry.ts';
import { chainHash } from '../../../src/keys/audit/chain.ts';
import { storedKey } from '../../support/keys.ts';

const PREVIOUS = 'a'.repeat(64);
const ENTRY = {
  number: 2,
  at: 3,
  actor: { kind: 'KEY', id: 'actor', name: 'Actor' },
  action: 'UPDATE',
  apiKey: { id: 'key', name: 'Key' },
  before: { name: 'Key' },
  after: { name: 'Other' },
  address: '192.0.2.1',
} satisfies AuditDraft & { number: number };
const FIELDS = [PREVIOUS, 2, 3, 'KEY', 'actor', 'Actor', 'UPDATE', 'key', 'Key', { name: 'Key' }, { name: 'Other' }];

describe('the hash of an audit entry', () => {
  it('is the SHA-256 of the previous one and all fields, as a JSON array', () => {
    const sha256 = (fields: unknown[]) => createHash('sha256').update(JSON.stringify(fields)).digest('hex');
    assert.equal(chainHash(ENTRY, PREVIOUS), sha256([...FIELDS, '192.0.2.1']));
    const { address: _address, ...unaddressed } = ENTRY;
    assert.equal(chainHash(unaddressed, PREVIOUS), sha256(FIELDS));
    assert.equal(
      chainHash({ ...unaddressed, apiKey: null }, PREVIOUS),
      sha256([...FIELDS.slice(0, 7), null, null, ...FIELDS.slice(9)]),
    );
  });

  it('is the HMAC-SHA-256 of the same with a key', () => {
    const hmac = createHmac('sha256', Buffer.alloc(32, 1)).update(JSON.stringify([...FIELDS, '192.0.2.1']));
    assert.equal(chainHash(ENTRY, PREVIOUS, createSecretKey(Buffer.alloc(32, 1))), `hmac:${hmac.digest('hex')}`);
  });
});

describe('what an audit entry has of a key', () => {
  const rotation = { previousPublicId: 'previous', startedAt: 0, grace: 5, previousEndsAt: 1000 };
  const key = storedKey('id', { publicId: 'public', expiresAt: 0, managed: true, rotation });

  it('is every field but the secrets, times in RFC 3339', () => {
    assert.deepEqual(auditValuesOf(key), {
      name: 'id',
      description: null,
      roles: [],
      permissions: ['ME:READ_OWN'],
      limits: [],
      allowFrom: null,
      prefix: 'svc_public_…',
      createdBy: null,
      expiresAt: '1970-01-01T00:00:00.000Z',
      disabledAt: null,
      managed: true,
      rotation: { previousPrefix: 'svc_previous_…', grace: 5, previousEndsAt: '1970-01-01T00:00:01.000Z' },
    });
  });

  it('is of a change the fields that differ', () => {
    const after = { ...key, roles: ['GUEST' as const], rotation: { ...rotation, grace: 6 } };
    const { before: old, after: changed } = auditChange(key, after);
    assert.deepEqual([old['roles'], changed['roles']], [[], ['GUEST']]);
    assert.deepEqual(
      [Object.keys(old), Object.keys(changed)],
      [
        ['roles', 'rotation'],
        ['roles', 'rotation'],
      ],
    );
    assert.deepEqual(auditChange(key, storedKey('id', { ...key, digest: 'other' })), { before: {}, after: {} });
  });
});
