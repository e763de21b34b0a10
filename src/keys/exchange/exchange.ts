import { chainExpiry, heldGrants, type Principal } from '../authorization/index.ts';
import { assertValid, formatTime, type Issue, printable } from '../basics/index.ts';
import { buildKey, createKey, freeName, type NewSecret, type Parts } from '../changes/index.ts';
import { type NewKey, validateNewKey, withoutDigests } from '../key/index.ts';
import { splitPermission } from '../permissions/index.ts';
import { CONSENTS, type Grants } from '../repository/index.ts';
import { createSecret } from '../secret/index.ts';

/** How long a key is valid that was given in exchange, in seconds: unless something else is asked for, and at most. */
const [USUAL_SECONDS, MAX_SECONDS] = [600, 86_400];

/** What somebody asks for who gives something in exchange. */
export interface WantedKey {
  /** Default: that of the key it descends from, with something random behind it. */
  readonly name: string | undefined;
  /** Default: all that it can be given. */
  readonly grants: Grants | undefined;
  /** After how many seconds it is to end, as it was given. Default: 600, or as the key it descends from. */
  readonly expiresIn: string | undefined;
  /** The application that may end it. */
  readonly clientId: string;
}

/** Gives keys for something else that proves who asks (RFC 8693). */
export class Exchange {
  readonly #options: Parts;

  constructor(options: Parts) {
    this.#options = options;
  }

  /**
   * Gives the holder of a key a child key that ends soon, by the rules for creating one.
   * @throws what `KeyManagement.create` throws; ValidationError for another time than 1 second to 1 day
   */
  async delegate(principal: Principal, wanted: WantedKey): Promise<NewSecret> {
    const { transactions, catalog, clock, randomBytes, randomId, repository } = this.#options;
    const now = clock();
    const { apiKey: parent } = principal;
    const end = now + readSeconds(wanted.expiresIn) * 1000;
    const latest = chainExpiry(principal.chain) ?? end;
    const naming = { otherwise: 'Key', isMarked: true, randomBytes };
    const input: NewKey = {
      name: wanted.name ?? (await freeName(repository, parent.name, naming)),
      ...(wanted.grants ?? usableGrants(principal)),
      expiresAt: formatTime(wanted.expiresIn === undefined ? Math.min(end, latest) : end),
    };
    assertValid(validateNewKey(input, catalog, now));
    const secret = createSecret(randomBytes);
    const built = buildKey(input, { catalog, now, id: randomId(), secret });
    return transactions.run(
      principal,
      async (transaction) => {
        const { key } = await createKey(transaction, input, built);
        await transaction.port(CONSENTS).rememberClient(key.id, wanted.clientId);
        return { key: secret.text, apiKey: withoutDigests(key) };
      },
      { now },
    );
  }
}

/** What a key grants that its parent keys let it use. */
function usableGrants(principal: Principal): Grants {
  const { apiKey, access, catalog } = principal;
  const held = heldGrants(principal, catalog).roles;
  return {
    roles: apiKey.roles.filter((role) => held.includes(role)),
    permissions: apiKey.permissions.filter((permission) => access.has(...splitPermission(permission))),
  };
}

/** @throws ValidationError */
function readSeconds(text: string | undefined): number {
  if (text === undefined) return USUAL_SECONDS;
  const seconds = /^[1-9]\d{0,5}$/.test(text) ? Number(text) : Infinity;
  const issue: Issue = {
    code: 'EXPIRY_INVALID',
    message: `"${printable(text)}" is no number of seconds from 1 to ${MAX_SECONDS}, after which the key is to end.`,
  };
  assertValid(seconds > MAX_SECONDS ? [issue] : []);
  return seconds;
}
