import { OPERATOR } from '../authorization/principal.ts';
import type { ApiKey } from '../key/api-key.ts';
import type { PlannedChange } from '../key/field-changes.ts';
import { containedFields, type Containment, type Containments, type Issued } from './contain.ts';

/** What names a key. */
export type KeyName = Pick<ApiKey, 'id' | 'name'>;

/** Something that a key did to another one, and that is in force. */
export type NamedIssue = Omit<Issued, 'apiKey'> & {
  /** Whether the other key is disabled already. */
  readonly isDisabled: boolean;
};

/** What containing a key does. */
export interface Contained {
  readonly apiKey: KeyName;
  /** Whether the key is still there. */
  readonly exists: boolean;
  readonly issued: readonly NamedIssue[];
  /** The keys that change, the contained one first. */
  readonly changes: readonly PlannedChange[];
  /** The requests of applications that get no key, with the name that it was to have. */
  readonly requests: readonly { readonly id: string; readonly client: string; readonly keyName: string }[];
}

/** Which key is contained: by its name or id, and from when on what it did counts, as in `AuditRequest`. */
export interface ContainRequest {
  readonly key: string;
  readonly since?: string | undefined;
}

/** What commands do to undo what keys did. */
export interface ContainmentOperations {
  plan(request: ContainRequest): Promise<Contained>;
  /** Undoes what is in force by then, also where that is more than was planned. */
  contain(request: ContainRequest): Promise<Contained>;
}

/** What the operator of a store does about that. */
export class OperatorContainments implements ContainmentOperations {
  readonly #containments: Containments;

  constructor({ containments }: { readonly containments: Containments }) {
    this.#containments = containments;
  }

  async plan({ key, since }: ContainRequest): Promise<Contained> {
    return containedAs(await this.#containments.plan(key, since, OPERATOR));
  }

  async contain({ key, since }: ContainRequest): Promise<Contained> {
    return containedAs(await this.#containments.contain(key, since, OPERATOR));
  }
}

/** What a key did to others, by the names of these. */
export function namedIssues(issued: readonly Issued[]): NamedIssue[] {
  return issued.map(({ name, apiKey, what, at }) => ({ name, what, at, isDisabled: apiKey?.disabledAt != null }));
}

/** What containing a key does, as it is shown. */
export function containedAs({ contained, exists, issued, changes, requests }: Containment): Contained {
  return {
    apiKey: contained,
    exists,
    issued: namedIssues(issued),
    changes: changes.map((change) => {
      const { id, name } = change.before;
      return { action: 'UPDATE', name, id, changes: containedFields(change) };
    }),
    requests: requests.map(({ id, client, approval }) => ({ id, client: client.name, keyName: approval!.keyName })),
  };
}
