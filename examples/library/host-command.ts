import { Command } from '@oclif/core';
import { keysOf, OPERATOR } from 'svc-api';

/** A command of a CLI that has svc-api as a plugin. */
export default class Disable extends Command {
  async run(): Promise<void> {
    await this.parse(Disable);
    const keys = await keysOf(this.config);
    const found = await keys.get('CI deploy', { actor: OPERATOR });
    if (found) await keys.disable(found.id, { actor: OPERATOR });
    await keys.close();
  }
}
