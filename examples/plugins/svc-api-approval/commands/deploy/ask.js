import { Args } from '@oclif/core';
import { commandOf } from '../../command.js';

const what = Args.string({ required: true, description: 'Which version, and where to.' });
export default commandOf('askForDeploy', 'Ask for approval of a deploy.', { what });
