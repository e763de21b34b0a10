import { type Actor, OPERATOR } from '../authorization/principal.ts';
import { DELIVERY_OPTIONS, presented, type SecretDelivery } from '../changes/delivery.ts';
import type { Parts } from '../changes/transactions.ts';
import type { ApiKey } from '../key/api-key.ts';
import { checkOptions, options as optionsIn, withoutUndefined, yesOrNo } from '../options.ts';
import { createSecret } from '../secret/secret.ts';
import {
  type AppliedKeys,
  applyDeclaration,
  applyPlaceOf,
  decideChanges,
  findDifferences,
  hasChanges,
  planChanges,
  revertApply,
  withoutDigestsIn,
} from './apply.ts';
import {
  type ApplyRules,
  checkDeclared,
  type DeclaredKey,
  type Plan,
  type PlannedChanges,
  plannedChanges,
} from './declaration.ts';

/** How declared keys are applied. */
export interface ApplyOptions {
  /** Delete keys that an earlier apply made and that are no longer declared. */
  prune?: boolean;
  /** Take over declared keys that another key created. Only the operator may. */
  adopt?: boolean;
  delivery?: SecretDelivery<AppliedKeys>;
}

/** Brings keys to what is declared. */
export class Declarations {
  readonly #options: Parts;

  constructor(options: Parts) {
    this.#options = options;
  }

  /**
   * What `apply` would change now; nothing is written.
   * @throws DeclarationError; KeysError OPTION_INVALID, PRUNE_REFUSED; ForbiddenError; a STORE_ error
   */
  async plan(
    declared: readonly DeclaredKey[],
    options: { prune?: boolean; adopt?: boolean },
    actor: Actor,
  ): Promise<Plan> {
    checkOptions<typeof options>('keys.declarations.plan', options, { prune: yesOrNo, adopt: yesOrNo });
    const { prune = false, adopt = false } = options;
    const place = applyPlaceOf(this.#options, actor);
    return planChanges(place, await checkDeclared('keys.declarations.plan', declared, place), { prune, adopt });
  }

  /**
   * Brings the keys to what is declared, in one transaction. Where nothing differs, nothing is written.
   * @throws DeclarationError; ValidationError; KeysError OPTION_INVALID, PRUNE_REFUSED; ForbiddenError; a STORE_ error;
   *   what `delivery` throws
   */
  async apply(declared: readonly DeclaredKey[], options: ApplyOptions, actor: Actor): Promise<AppliedKeys> {
    checkOptions<ApplyOptions>('keys.declarations.apply', options, {
      prune: yesOrNo,
      adopt: yesOrNo,
      delivery: optionsIn(DELIVERY_OPTIONS),
    });
    const { prune = false, adopt = false, delivery } = options;
    const { randomBytes, randomId, transactions } = this.#options;
    const rules = { prune, adopt };
    const place = applyPlaceOf(this.#options, actor);
    const checked = await checkDeclared('keys.declarations.apply', declared, place);
    const found = await findDifferences(place, checked, rules, { upToFirst: true });
    if (!hasChanges(found)) return { plan: await decideChanges(place, found, rules), created: [] };
    const newSecret = () => createSecret(randomBytes);
    return transactions.runWithSecrets(
      actor,
      {
        run: (transaction) => applyDeclaration(transaction, checked, { ...rules, newSecret, newId: randomId }),
        present: withoutDigestsIn,
        revert: revertApply,
      },
      { delivery },
    );
  }
}

/** What was applied. */
export interface Applied extends PlannedChanges {
  /** The new keys with their secrets, in the order of their declarations. */
  readonly created: { readonly key: string; readonly apiKey: Pick<ApiKey, 'id' | 'name'> }[];
}

/** What commands do with declared keys. */
export interface ApplyOperations {
  plan(declared: readonly DeclaredKey[], rules: ApplyRules): Promise<PlannedChanges>;
  /** With a server, `prepare` is called before anything is changed, too: with the names of new keys alone. */
  apply(declared: readonly DeclaredKey[], rules: ApplyRules, delivery: SecretDelivery<Applied>): Promise<Applied>;
}

/** What the operator of a store does with them. */
export class OperatorDeclarations implements ApplyOperations {
  readonly #declarations: Declarations;

  constructor({ declarations }: { readonly declarations: Declarations }) {
    this.#declarations = declarations;
  }

  async plan(declared: readonly DeclaredKey[], rules: ApplyRules): Promise<PlannedChanges> {
    return plannedChanges(await this.#declarations.plan(declared, withoutUndefined(rules), OPERATOR));
  }

  async apply(
    declared: readonly DeclaredKey[],
    rules: ApplyRules,
    delivery: SecretDelivery<Applied>,
  ): Promise<Applied> {
    const present = ({ plan, created }: AppliedKeys): Applied => {
      const keys = created.map(({ apiKey }) => apiKey);
      return { ...plannedChanges(plan, keys), created };
    };
    const options = { ...withoutUndefined(rules), delivery: presented(delivery, present) };
    return present(await this.#declarations.apply(declared, options, OPERATOR));
  }
}
