import type { Applied, ApplyOperations } from '../keys/apply/declarations.ts';
import type { ApplyRules, DeclaredKey, PlannedChanges } from '../keys/apply/declaration.ts';
import type { SecretDelivery } from '../keys/changes/delivery.ts';
import { KeysError } from '../keys/errors.ts';
import type { Data, ServerConnection } from './connection.ts';
import { deliver } from './deliver.ts';
import { APPLY, DELETE } from './documents.ts';
import { readPlanned } from './read-changes.ts';
import { readName, secretIn } from './read-key.ts';
import { declaredInput } from './write-key.ts';

/** What commands do with declared keys on a running server. */
export class RemoteDeclarations implements ApplyOperations {
  readonly #connection: ServerConnection;

  constructor(connection: ServerConnection) {
    this.#connection = connection;
  }

  async plan(declared: readonly DeclaredKey[], rules: ApplyRules): Promise<PlannedChanges> {
    return this.#apply(declared, rules, true);
  }

  async apply(
    declared: readonly DeclaredKey[],
    rules: ApplyRules,
    delivery: SecretDelivery<Applied>,
  ): Promise<Applied> {
    const plan = await this.plan(declared, rules);
    if (plan.changes.length === 0) return { ...plan, created: [] };
    const planned = plan.changes.filter(({ action }) => action === 'CREATE');
    delivery.begin?.();
    // What would go wrong with the secrets afterwards goes wrong now, as far as that can be told.
    delivery.prepare?.({ ...plan, created: planned.map(({ name }) => ({ key: '', apiKey: { id: '', name } })) });
    const applied = await this.#apply(declared, rules, false);
    const ids = applied.created.map(({ apiKey }) => apiKey.id);
    await deliver(applied, delivery, 'The secrets of the new API keys', async () => {
      if (ids.length > 0)
        await this.#connection.ask({
          document: DELETE,
          variables: { ids },
          read: ({ deleteApiKeys }: Data) => deleteApiKeys.keys.map(readName),
        });
    });
    return applied;
  }

  #apply(declared: readonly DeclaredKey[], { prune, adopt }: ApplyRules, dryRun: boolean): Promise<Applied> {
    if (adopt)
      throw new KeysError(
        'STORE_REQUIRED',
        'Only the operator adopts keys. Run it where the store is, or leave it out.',
      );
    const variables = { input: { keys: declared.map(declaredInput), prune, dryRun } };
    const read = ({ applyApiKeys }: Data): Applied => {
      const created = applyApiKeys.created.map(({ key, apiKey }: Data) => ({
        key: secretIn(key),
        apiKey: readName(apiKey),
      })) as Applied['created'];
      // A file gets the name of its key: no other than one of those declared here.
      if (!created.every(({ apiKey }) => declared.some(({ name }) => name === apiKey.name)))
        throw new TypeError('a key that is not declared');
      const ids = created.map(({ apiKey }) => apiKey.id);
      return { ...readPlanned(applyApiKeys, declared, ids), created };
    };
    return this.#connection.ask({ document: APPLY, variables, read });
  }
}
