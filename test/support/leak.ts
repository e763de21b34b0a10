import type { ApiKey } from '../../src/keys/key/api-key.ts';
import { prefixOf } from '../../src/keys/secret/secret.ts';
import type { TestKeys } from './keys.ts';

/** Records a leaked secret in the audit log, as a scan does. */
export function noteLeak({ store, time }: Pick<TestKeys, 'store' | 'time'>, key: ApiKey, place: string): Promise<void> {
  const { id, name, publicId } = key;
  const found = {
    at: time.now,
    actor: { kind: 'CLI', id: null, name: 'tester' },
    action: 'LEAK',
    apiKey: { id, name },
    before: null,
    after: { secret: prefixOf(publicId), place },
  } as const;
  return store.repository.write((writer) => writer.appendToAuditLog([found]));
}
