import type { Follower } from '../../keys/repository/index.ts';
import { type Connection, connectionOver } from '../connection.ts';
import { KeyChanges } from '../key-changes.ts';
import { MEMORY } from '../location.ts';
import type { FeatureTables } from '../tables.ts';
import { PrivateFile } from './private-file.ts';

/** A new store in the memory of this process, which is lost when closed. @throws KeysError STORE_… */
export async function openMemoryStore(features: readonly FeatureTables[]): Promise<Connection> {
  const store = await PrivateFile.open(MEMORY, { location: MEMORY, mustExist: false, features });
  const changes = new KeyChanges();
  let follower: Follower | undefined;
  let note: { readonly text: string; readonly writtenAt: number } | undefined;
  return connectionOver(store, {
    created: true,
    async write(work) {
      let changed: string[] | undefined;
      const keysChanged = (ids: readonly string[]) => void (changed = [...(changed ?? []), ...ids]);
      const result = await store.write((transaction) => work(transaction, keysChanged));
      if (changed) {
        changes.add(changed);
        await follower?.changed();
      }
      return result;
    },
    // Other processes cannot change it.
    revision: () => changes.revision,
    keysChangedSince: (revision) => changes.since(revision),
    follow: async (next) => {
      follower = next;
      return {
        leasedUntil: () => Infinity,
        note: async (text) => void (note = { text, writtenAt: performance.now() }),
        stop: async () => void (follower = undefined),
      };
    },
    notes: async () => (note ? [{ text: note.text, ageMs: performance.now() - note.writtenAt }] : []),
  });
}
