import { examplesOf, BaseCommand } from '../../../../../cli/base-command.ts';
import type { TestResult } from '../../../cli/webhook.ts';

export default class Test extends BaseCommand {
  static override group = 'Servers';
  static override isAtTop = true;
  static override topic = 'Check the webhook that gets notices.';
  static override summary = 'Send a test notice to the webhook, and print its answer.';
  static override description =
    'Sends one notice of the type "test" from this machine, signed like those of servers. Needs the signing secret, from ' +
    '"secretFile" or SVC_API_NOTICES_SECRET. Exits with 1 unless the answer is a 2xx. Does not touch the key store or ' +
    'pending notices.';
  static override examples = examplesOf([
    ['Check a receiver', ''],
    ['Check the webhook of another file, in a script', '--config ./new.yaml --json'],
  ]);

  private tried: TestResult | undefined;

  async run(): Promise<object> {
    await this.parse(Test);
    const [{ readDeclaredWebhook, tryWebhook }, { operatorName }] = await Promise.all([
      import('../../../cli/webhook.ts'),
      import('../../../../../keys/authorization/index.ts'),
    ]);
    const settings = await readDeclaredWebhook(this.config, this.configFile);
    const tried = await tryWebhook(settings, {
      env: this.environment,
      by: operatorName(),
      onTried: (found) => void (this.tried = found),
    });
    const { webhook, id, status, durationMs } = tried;
    const { channel = 'webhook' } = settings;
    const text =
      channel === 'webhook'
        ? `The webhook ${webhook} accepted the test notice ${id}: ${status}, in ${durationMs} ms.`
        : `The channel ${channel} to ${webhook} sent the test notice ${id}, in ${durationMs} ms.`;
    return this.printLines(tried, text);
  }

  /** The notice and its target, once sent. */
  protected override get errorFields(): object {
    return this.tried ?? {};
  }
}
