import { createHash } from 'node:crypto';
import type { Principal } from '../../keys/authorization/index.ts';
import { type Permission, splitPermission } from '../../keys/permissions/index.ts';

/** The key that has begun a session or a task of an MCP server. */
export interface Holder {
  readonly keyId: string;
  /** The id of the key that answers for it. */
  readonly owner: string;
  /** The tool whose call continues as a task; undefined for a session. */
  readonly tool?: string | undefined;
  /** The permissions of a session: another key of the owner goes on with it only if it has all of them. */
  readonly permissions?: readonly Permission[] | undefined;
}

/** The keys that hold sessions and tasks. */
export interface Holders {
  note(id: string, holder: Holder): void;
  /** The holders, each at the place of its id; null for none. */
  find(ids: readonly string[]): Promise<(Holder | null)[]>;
}

/**
 * Checks whether a key can continue the session or task of a holder: it must be the same key, or one of the same owner.
 * For a session, another key needs all its permissions. The tool of a task is checked elsewhere.
 */
export function goesOn({ keyId, owner, permissions = [] }: Holder, { apiKey, owner: own, access }: Principal): boolean {
  const hasAll = () => permissions.every((permission) => access.has(...splitPermission(permission)));
  return keyId === apiKey.id || (owner === own && hasAll());
}

/** The most that are known, and of one key: of more, those that were not used for longest are forgotten. */
const [MAX_HELD, MAX_OF_KEY] = [50_000, 5000];
/** A tool with a longer name begins no task that is known (a name has at most 128 characters by the specification). */
const MAX_TOOL = 128;

/** An MCP server, as a client names it. */
export interface McpServer {
  readonly upstream: string | undefined;
  readonly host: string;
  /** With or without a query. */
  readonly path: string;
}

/** A unique name for a session or task: servers may use the same id for different ones. */
export function heldAs(kind: 'session' | 'task', { upstream = '', host, path }: McpServer, id: string): string {
  const parts = [kind, upstream, host.toLowerCase(), path.replace(/\?.*/s, ''), id];
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64');
}

/** Holders in the memory of this process. */
export class KnownHolders implements Holders {
  /** In order of last use. */
  readonly #held = new Map<string, Holder>();
  readonly #byKey = new Map<string, Set<string>>();
  readonly #most: number;
  readonly #mostOfKey: number;

  constructor(most = MAX_HELD, mostOfKey = MAX_OF_KEY) {
    this.#most = most;
    this.#mostOfKey = mostOfKey;
  }

  note(id: string, holder: Holder): void {
    this.#forget(id);
    if (holder.tool !== undefined && holder.tool.length > MAX_TOOL) return;
    const ofKey = this.#byKey.get(holder.keyId);
    if (ofKey && ofKey.size >= this.#mostOfKey) this.#forget(ofKey.values().next().value!);
    if (this.#held.size >= this.#most) this.#forget(this.#held.keys().next().value!);
    this.#add(id, holder);
  }

  async find(ids: readonly string[]): Promise<(Holder | null)[]> {
    return ids.map((id) => {
      const holder = this.#held.get(id);
      if (!holder) return null;
      this.#forget(id);
      this.#add(id, holder);
      return holder;
    });
  }

  #add(id: string, holder: Holder): void {
    this.#held.set(id, holder);
    const ofKey = this.#byKey.get(holder.keyId);
    if (ofKey) ofKey.add(id);
    else this.#byKey.set(holder.keyId, new Set([id]));
  }

  #forget(id: string): void {
    const holder = this.#held.get(id);
    if (!holder) return;
    this.#held.delete(id);
    const ofKey = this.#byKey.get(holder.keyId)!;
    ofKey.delete(id);
    if (ofKey.size === 0) this.#byKey.delete(holder.keyId);
  }
}
