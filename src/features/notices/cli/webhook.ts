import { randomUUID } from 'node:crypto';
import type { Config as OclifConfig } from '@oclif/core/interfaces';
import { hostVocabulary } from '../../../cli/host.ts';
import { KeysError, printable, withoutUndefined } from '../../../keys/basics/index.ts';
import { type NoticeSettings, shownWebhook, testNotice } from '../notice.ts';

/**
 * The webhook in the configuration, as valid for servers.
 * @param named the path that the user named
 * @throws KeysError CONFIG_…; CONFIG_UNAVAILABLE also without a configuration or a webhook in it; SCHEMA_INVALID, USAGE
 */
export async function readDeclaredWebhook(oclif: OclifConfig, named: string | undefined): Promise<NoticeSettings> {
  const [{ loadConfig }, ofHost] = await Promise.all([import('../../../config/load-config.ts'), hostVocabulary(oclif)]);
  const { file, notices } = await loadConfig(withoutUndefined({ file: named, ...ofHost }));
  if (notices) return notices;
  const missing =
    file === undefined
      ? 'There is no configuration. Pass --config <path>, or set SVC_API_CONFIG.'
      : `There is no webhook to test: ${printable(file, 200)} has no "notices". Add it, with a "url".`;
  throw new KeysError('CONFIG_UNAVAILABLE', missing);
}

export interface TestResult {
  /** The origin of its address, since the rest may be a secret. */
  webhook: string;
  /** The id of the notice, which the receiver gets as well. */
  id: string;
  /** The status of the response; null without one, and for channels other than webhooks. */
  status: number | null;
  durationMs: number;
}

/** Options for testing a webhook. */
interface TryOptions {
  env: NodeJS.ProcessEnv;
  /** The name of the machine's user. */
  by: string;
  timeoutMs?: number;
  /** Called with the outcome, before a failure is thrown. */
  onTried: (tried: TestResult) => void;
}

/** Failures of OpenSSL that are about the certificate. */
const CERTIFICATE = /CERT|SIGNATURE|ISSUER/;

/**
 * Sends a test notice once, like servers do but without a store's queue.
 * @throws CliError WEBHOOK_FAILED if the receiver did not accept it; KeysError CONFIG_… if it cannot be signed
 */
export async function tryWebhook(settings: NoticeSettings, options: TryOptions): Promise<TestResult> {
  const { env, by, timeoutMs, onTried } = options;
  const [{ attempt, readDestination }, { allFeatures }] = await Promise.all([
    import('../index.ts'),
    import('../../index.ts'),
  ]);
  const destination = await readDestination(settings, env, allFeatures());
  const notice = testNotice({ id: randomUUID(), at: Date.now(), by });
  const began = performance.now();
  const answer = await attempt(destination, notice, { signal: new AbortController().signal, timeoutMs });
  const { channel = 'webhook' } = settings;
  const isWebhook = channel === 'webhook';
  const tried = {
    webhook: shownWebhook(settings.url),
    id: notice.id,
    status: isWebhook ? (answer.status ?? null) : null,
    durationMs: Math.round(performance.now() - began),
  };
  onTried(tried);
  if (answer.is === 'taken') return tried;
  const { webhook, id } = tried;
  const hint = hintOf(answer.failure, answer.status);
  const receiver = isWebhook ? `webhook ${webhook}` : `channel ${printable(channel)} to ${webhook}`;
  const message = `The ${receiver} did not accept the test notice ${id}: ${answer.failure}.${hint}`;
  throw new KeysError('WEBHOOK_FAILED', message);
}

/** A likely cause of a failure, if any. */
function hintOf(failure: string, status: number | undefined): string {
  if (status === 401 || status === 403) return ' Check that the receiver has the same secret and the correct time.';
  if (status === 404 || status === 405) return ' Check the path in "url".';
  if (status === undefined && CERTIFICATE.test(failure))
    return ' Its certificate is not trusted, or is for another name. Set NODE_EXTRA_CA_CERTS to a file of trusted certificates.';
  return '';
}
