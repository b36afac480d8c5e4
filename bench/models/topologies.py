# SPDX-License-Identifier: Apache-2.0
"""Well-known convolutional networks for make_models.py.

Feed pixels of about zero mean and unit variance. Gains are chosen so that activations keep the size they have in a
trained network, and the logits are neither equal nor far apart.
"""
from network import CLASSES, Network


def resnet50():
    net = Network("resnet50", seed=50)

    def conv_bn(x, outputs, kernel, stride=1, scale=1.0):
        x = net.conv(x, outputs, kernel, stride, pad=kernel // 2, bias=False)
        return net.batch_norm(x, scale)

    def bottleneck(x, width, stride):
        outputs = 4 * width
        y = net.relu(conv_bn(x, width, 1))
        y = net.relu(conv_bn(y, width, 3, stride))
        # A weak residual branch keeps the sum from growing with depth.
        y = conv_bn(y, outputs, 1, scale=0.25)
        if net.channels[x] != outputs:
            x = conv_bn(x, outputs, 1, stride)
        return net.relu(net.sum(y, x))

    x = net.relu(conv_bn("data", 64, 7, 2))
    x = net.max_pool(x, 3, 2, pads=(1, 1, 1, 1))
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            x = bottleneck(x, 64 << stage, 2 if stage > 0 and block == 0 else 1)
    x = net.rows(net.average_pool(x, 7, strides=[1, 1]), 1)
    net.softmax(net.gemm(x, CLASSES, gain=1.0))
    return net.model()


def mobilenet_v2():
    net = Network("mobilenet_v2", seed=2018)

    def conv_bn(x, outputs, kernel, stride=1, gain=2.0, group=1, scale=1.0):
        x = net.conv(x, outputs, kernel, stride, pad=kernel // 2, bias=False, gain=gain, group=group)
        return net.batch_norm(x, scale)

    def block(x, outputs, stride, expansion):
        y, width = x, expansion * net.channels[x]
        if expansion > 1:  # the input is as often negative as not
            y = net.relu6(conv_bn(y, width, 1, gain=1.0))
        y = net.relu6(conv_bn(y, width, 3, stride, group=width))
        if stride > 1 or net.channels[x] != outputs:
            return conv_bn(y, outputs, 1)
        # A weak residual branch keeps the sum from growing with depth.
        return net.node("Add", [x, conv_bn(y, outputs, 1, scale=0.25)], outputs)

    x = net.relu6(conv_bn("data", 32, 3, 2, gain=1.0))
    for expansion, outputs, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                               (6, 160, 3, 2), (6, 320, 1, 1)):
        for index in range(blocks):
            x = block(x, outputs, stride if index == 0 else 1, expansion)
    x = net.global_average_pool(net.relu6(conv_bn(x, 1280, 1, gain=1.0)))
    # The mean over 49 positions leaves little of the deviation.
    net.softmax(net.gemm(net.rows(x, 1), CLASSES, gain=4.0))
    return net.model()


def squeezenet():
    """SqueezeNet 1.1."""
    net = Network("squeezenet", seed=11)

    def fire(x, squeeze, expand):
        x = net.conv_relu(x, squeeze, 1)
        return net.concat(net.conv_relu(x, expand, 1), net.conv_relu(x, expand, 3, pad=1))

    x = net.max_pool(net.conv_relu("data", 64, 3, 2), 3, 2)
    x = fire(fire(x, 16, 64), 16, 64)
    x = net.max_pool(x, 3, 2)
    x = fire(fire(x, 32, 128), 32, 128)
    x = net.max_pool(x, 3, 2)
    x = fire(fire(x, 48, 192), 48, 192)
    x = fire(fire(x, 64, 256), 64, 256)
    x = net.conv_relu(net.dropout(x), CLASSES, 1, gain=1.0)
    net.softmax(net.flatten(net.global_average_pool(x)))
    return net.model()


def inception():
    """Inception v1, also known as GoogLeNet, without its training-time heads."""
    net = Network("inception", seed=22)

    def halve(x):
        return net.max_pool(x, 3, 2)

    def module(x, one, reduce3, three, reduce5, five, pool):
        return net.concat(
            net.conv_relu(x, one, 1),
            net.conv_relu(net.conv_relu(x, reduce3, 1), three, 3, pad=1),
            net.conv_relu(net.conv_relu(x, reduce5, 1), five, 5, pad=2),
            net.conv_relu(net.max_pool(x, 3, 1, pads=(1, 1, 1, 1)), pool, 1))

    x = net.lrn(halve(net.conv_relu("data", 64, 7, 2, pad=3)))
    x = net.conv_relu(net.conv_relu(x, 64, 1), 192, 3, pad=1)
    x = halve(net.lrn(x))
    x = module(x, 64, 96, 128, 16, 32, 32)
    x = module(x, 128, 128, 192, 32, 96, 64)
    x = halve(x)
    x = module(x, 192, 96, 208, 16, 48, 64)
    x = module(x, 160, 112, 224, 24, 64, 64)
    x = module(x, 128, 128, 256, 24, 64, 64)
    x = module(x, 112, 144, 288, 32, 64, 64)
    x = module(x, 256, 160, 320, 32, 128, 128)
    x = halve(x)
    x = module(x, 256, 160, 320, 32, 128, 128)
    x = module(x, 384, 192, 384, 48, 128, 128)
    x = net.rows(net.dropout(net.average_pool(x, 7, strides=[1, 1], pads=[0, 0, 1, 1])), 1)
    net.softmax(net.gemm(x, CLASSES, gain=1.0))
    return net.model()

def vgg19():
    net = Network("vgg19", seed=19)
    x = "data"
    for width, layers in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(layers):
            x = net.conv_relu(x, width, 3, pad=1)
        x = net.max_pool(x, 2, 2)
    x = net.rows(x, 7)
    for _ in range(2):
        x = net.dropout(net.relu(net.gemm(x, 4096, gain=2.0)))
    net.softmax(net.gemm(x, CLASSES, gain=1.0))
    return net.model()


def alexnet():
    """The form of Caffe's reference model, with convolutions in two groups."""
    net = Network("alexnet", seed=12)
    x = net.max_pool(net.lrn(net.conv_relu("data", 96, 11, 4, gain=1.0)), 3, 2)
    x = net.max_pool(net.lrn(net.conv_relu(x, 256, 5, pad=2, group=2)), 3, 2)
    x = net.conv_relu(x, 384, 3, pad=1)
    x = net.conv_relu(x, 384, 3, pad=1, group=2)
    x = net.conv_relu(x, 256, 3, pad=1, group=2)
    x = net.rows(net.halve(x), 6)
    for _ in range(2):
        x = net.dropout(net.relu(net.gemm(x, 4096, gain=2.0)))
    net.softmax(net.gemm(x, CLASSES, gain=1.0))
    return net.model()


def zfnet512():
    net = Network("zfnet512", seed=13)

    def stem(x, outputs, kernel):
        # The gain makes up for the normalisation, which divides by at least 2 to the power of 0.75.
        x = net.lrn(net.conv_relu(x, outputs, kernel, 2, gain=4.0), alpha=5e-4, bias=2.0)
        return net.max_pool(x, 3, 2)

    x = stem(stem("data", 96, 7), 256, 5)
    for _ in range(3):
        x = net.conv_relu(x, 512, 3, pad=1)
    x = net.rows(net.max_pool(x, 2, 2), 6)
    x = net.relu(net.gemm(x, 4096, gain=2.0))
    x = net.relu(net.gemm(x, 1024, gain=2.0))
    net.softmax(net.gemm(x, CLASSES, gain=1.0))
    return net.model()


def densenet121():
    """Logits of 1x1 maps: a convolution classifies, and no softmax follows."""
    net = Network("densenet121", seed=121)

    def norm_relu(x):
        return net.relu(net.scaled_norm(x))

    def dense(x):
        y = net.conv(norm_relu(x), 128, 1, bias=False)
        return net.concat(x, net.conv(norm_relu(y), 32, 3, pad=1, bias=False))

    x = norm_relu(net.conv("data", 64, 7, 2, pad=3, bias=False, gain=1.0))
    x = net.max_pool(x, 3, 2, pads=(1, 1, 1, 1))
    for stage, layers in enumerate((6, 12, 24, 16)):
        if stage > 0:
            x = net.conv(norm_relu(x), net.channels[x] // 2, 1, bias=False)
            x = net.average_pool(x, 2, strides=[2, 2], pads=[0] * 4)
        for _ in range(layers):
            x = dense(x)
    net.conv(net.global_average_pool(norm_relu(x)), CLASSES, 1, gain=1.0)
    return net.model("logits", ("N", CLASSES, 1, 1))


def inception_v2():
    """With normalisations, and two 3x3 convolutions where the first Inception has one of 5x5."""
    net = Network("inception_v2", seed=23)

    def unit(x, outputs, kernel=1, stride=1):
        x = net.conv(x, outputs, kernel, stride, pad=kernel // 2, bias=False)
        return net.relu(net.scaled_norm(x))

    def average(x):
        return net.average_pool(x, 3, strides=[1, 1], pads=[1] * 4)

    def largest(x):
        return net.max_pool(x, 3, 1, pads=(1, 1, 1, 1))

    def module(x, one, reduce3, three, reduce5, five, pooled, pool=average):
        return net.concat(unit(x, one), unit(unit(x, reduce3), three, 3),
                          unit(unit(unit(x, reduce5), five, 3), five, 3), unit(pool(x), pooled))

    def narrow(x, reduce3, three, reduce5, five):
        """A module that halves the maps; pooled channels pass as they are."""
        return net.concat(unit(unit(x, reduce3), three, 3, 2),
                          unit(unit(unit(x, reduce5), five, 3), five, 3, 2), net.halve(x))

    x = net.halve(unit("data", 64, 7, 2))
    x = net.halve(unit(unit(x, 64), 192, 3))
    x = module(x, 64, 64, 64, 64, 96, 32)
    x = module(x, 64, 64, 96, 64, 96, 64)
    x = narrow(x, 128, 160, 64, 96)
    x = module(x, 224, 64, 96, 96, 128, 128)
    x = module(x, 192, 96, 128, 96, 128, 128)
    x = module(x, 160, 128, 160, 128, 160, 96)
    x = module(x, 96, 128, 192, 160, 192, 96)
    x = narrow(x, 128, 192, 192, 256)
    x = module(x, 352, 192, 320, 160, 224, 128)
    x = module(x, 352, 192, 320, 192, 224, 128, largest)
    x = net.rows(net.average_pool(x, 7, strides=[1, 1], pads=[0] * 4), 1)
    net.softmax(net.gemm(x, CLASSES, gain=1.0))
    return net.model()


def shufflenet():
    """ShuffleNet v1 of 4 groups."""
    net = Network("shufflenet", seed=4)
    groups = 4

    def unit(x, width, side, stride):
        y = net.conv(x, width, 1, bias=False, group=groups)
        y = net.shuffle(net.relu(net.batch_norm(y)), groups, side)
        y = net.batch_norm(net.conv(y, width, 3, stride, pad=1, bias=False, group=width))
        y = net.conv(y, width, 1, bias=False, group=groups, gain=1.0)
        if stride == 1:
            return net.relu(net.sum(net.batch_norm(y, scale=0.25), x))
        pooled = net.average_pool(x, 3, strides=[2, 2], pads=[1] * 4)
        return net.relu(net.concat(net.batch_norm(y), pooled))

    x = net.relu(net.batch_norm(net.conv("data", 24, 3, 2, pad=1, gain=1.0)))
    x = net.max_pool(x, 3, 2, pads=(1, 1, 1, 1))
    for stage, (width, units) in enumerate(((112, 4), (136, 8), (272, 4))):
        side = 56 >> stage
        x = unit(x, width, side, 2)
        for _ in range(units - 1):
            x = unit(x, net.channels[x], side // 2, 1)
    x = net.rows(net.average_pool(x, 7, strides=[1, 1]), 1)
    net.softmax(net.gemm(x, CLASSES, gain=1.0))
    return net.model()
