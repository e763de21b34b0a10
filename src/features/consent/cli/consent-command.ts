import * as Args from '@oclif/core/args';
import { formatTime, relativeTime } from '../../../keys/basics/index.ts';
import { scopeItems } from '../../../keys/permissions/index.ts';
import { readUserCode } from '../codes.ts';
import type { ConsentPlace, ConsentState } from '../consent.ts';
import { KeyCommand } from '../../../cli/manage/key-command.ts';
import type { Column } from '../../../cli/output.ts';

/** A request as JSON, the same in every command. The list of fields is fixed. */
export function consentJson(request: ConsentState) {
  const { id, client, flow, status, roles, permissions, keyExpiresIn, address, approval } = request;
  return {
    id,
    client,
    flow,
    status,
    roles,
    permissions,
    /** Such as `30d`; null if the application did not say. */
    keyExpiresIn,
    address,
    createdAt: formatTime(request.createdAt),
    expiresAt: formatTime(request.expiresAt),
    /** Its key; null until approved. */
    apiKey: approval && {
      name: approval.keyName,
      roles: approval.roles,
      permissions: approval.permissions,
      expiresAt: formatTime(approval.keyExpiresAt),
    },
  };
}

/** The columns of the open requests. */
export const CONSENT_COLUMNS: readonly Column[] = [
  { title: 'ID', leaves: 1 },
  { title: 'APPLICATION', least: 10 },
  { title: 'STATUS' },
  { title: 'FOR', least: 10 },
  { title: 'FROM', least: 8, leaves: 3 },
  { title: 'EXPIRES', leaves: 2 },
];

/** A request as the cells of a row. On a terminal, times are relative. */
export function consentRow(request: ConsentState, isTerminal: boolean): string[] {
  const { id, client, status, address, expiresAt } = request;
  return [
    id,
    `${client.name} (${client.id})`,
    status,
    scopeItems(request).join(', '),
    address ?? '-',
    isTerminal ? relativeTime(expiresAt) : formatTime(expiresAt),
  ];
}

/** Describes a request to a person who decides, in lines. */
function consentText(request: ConsentState): string {
  const { client, audience, address, keyExpiresIn, expiresAt } = request;
  const fields = {
    application: `${client.name} (${client.id})`,
    from: address ?? 'an unknown address',
    for: scopeItems(request).join(', '),
    ...(audience && { 'valid only at': audience }),
    'key expires': keyExpiresIn === null ? 'never' : `after ${keyExpiresIn}`,
    'decide until': formatTime(expiresAt),
  };
  return Object.entries(fields)
    .map(([field, value]) => `${field.padEnd(14)}${value}`)
    .join('\n');
}

/** The code as an argument. Without `ignoreStdin`, oclif would read a missing one from stdin. */
export const codeArg = (description: string) => ({
  code: Args.string({ description, required: true, ignoreStdin: true }),
});

/** Reads a request argument: a code, or otherwise an id. */
export function placeOf(text: string): ConsentPlace {
  return readUserCode(text) === undefined ? { requestId: text } : { userCode: text };
}

/** Base of commands about requests of applications. */
export abstract class ConsentCommand extends KeyCommand {
  /** Shows a request and asks for confirmation. @throws CliError CANCELLED, or USAGE without a terminal */
  protected async confirmDecision(request: ConsentState, question: string): Promise<void> {
    this.requireAnswer('decide');
    await this.confirm(question, consentText(request));
  }
}
